#include "cpufree/base/code_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <thread>

#include "cpufree/base/words.hpp"

namespace cpufree {

namespace {

// Behind the code: what the file is, and the hash of the code.
constexpr std::string_view kMark = "cpufree kernel 2";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kTail = kMark.size() + kDigits;
constexpr std::chrono::milliseconds kLook{20};

std::string path_in(const std::string& folder, std::string_view key) {
  return folder + "/" + std::string(key) + ".kernel";
}

// The code in a file; none where the file is not whole.
std::optional<std::string> code_in(const std::string& path) {
  std::string text = text_of(path);
  if (text.size() < kTail) return std::nullopt;
  const std::string tail = text.substr(text.size() - kTail);
  text.resize(text.size() - kTail);
  if (tail != std::string(kMark) + digits_of(hash_of({text}))) return std::nullopt;
  return text;
}

// Whether the whole file has been written, and has its name.
bool write_file(const std::string& path, const std::string& code) {
  std::string part = path + ".XXXXXX";
  const int handle = mkstemp(part.data());
  if (handle < 0) return false;
  std::error_code error;
  std::FILE* const file = fdopen(handle, "w");
  if (file == nullptr) {
    close(handle);
    std::filesystem::remove(part, error);
    return false;
  }
  const std::string text = code + std::string(kMark) + digits_of(hash_of({code}));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written) {
    std::filesystem::rename(part, path, error);
    if (!error) return true;
  }
  std::filesystem::remove(part, error);
  return false;
}

// A file to lock in place of a key: few for all keys, as none of them may ever be removed.
int open_lock(const std::string& folder, std::string_view key) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = folder + "/.lock-" + std::string(key.substr(0, 2));
  return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

}  // namespace

std::uint64_t hash_of(std::initializer_list<std::string_view> texts) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  for (const std::string_view text : texts) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    for (std::size_t k = 0, length = text.size(); k < sizeof length; ++k, length >>= 8)
      add(static_cast<unsigned char>(length & 255));
  }
  return hash;
}

std::string digits_of(std::uint64_t hash) {
  std::string text(kDigits, '0');
  for (std::size_t k = kDigits; k > 0; --k, hash >>= 4) text[k - 1] = "0123456789abcdef"[hash & 15];
  return text;
}

CodeClaim::~CodeClaim() {
  if (handle_ >= 0) close(handle_);
}

std::optional<std::string> CodeCache::find(std::string_view key) const {
  for (const std::string& folder : folders_)
    if (!folder.empty())
      if (auto code = code_in(path_in(folder, key))) return code;
  return std::nullopt;
}

std::optional<std::string> CodeCache::find_file(std::string_view key) const {
  for (const std::string& folder : folders_)
    if (const std::string path = path_in(folder, key); !folder.empty() && code_in(path))
      return path;
  return std::nullopt;
}

std::optional<std::string> CodeCache::keep(std::string_view key, const std::string& code) const {
  for (const std::string& folder : folders_) {
    if (folder.empty()) continue;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (const std::string path = path_in(folder, key); write_file(path, code)) return path;
  }
  return std::nullopt;
}

CodeClaim CodeCache::claim(std::string_view key, std::chrono::seconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (const std::string& folder : folders_) {
    const int handle = folder.empty() ? -1 : open_lock(folder, key);
    if (handle < 0) continue;
    while (flock(handle, LOCK_EX | LOCK_NB) != 0) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() > end) break;
      std::this_thread::sleep_for(kLook);
    }
    return CodeClaim(handle);
  }
  return CodeClaim();
}

}  // namespace cpufree
