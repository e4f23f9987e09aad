#include "cpufree/systems/gpu/compiled/code_cache.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cpufree/base/words.hpp"

namespace cpufree {

namespace {

// Before the code: what the file is, and the hash of the code, as hexadecimal digits.
constexpr std::string_view kMark = "cpufree kernel 1 ";
constexpr std::size_t kDigits = 16;

std::string digits(std::uint64_t number) {
  std::string text(kDigits, '0');
  for (std::size_t k = kDigits; k > 0; --k, number >>= 4)
    text[k - 1] = "0123456789abcdef"[number & 15];
  return text;
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

std::string CodeCache::path(std::uint64_t key) const {
  return folder_ + "/" + digits(key) + ".kernel";
}

std::optional<std::string> CodeCache::find(std::uint64_t key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string text = text_of(path(key));
  const std::size_t head = kMark.size() + kDigits;
  if (text.size() < head || !text.starts_with(kMark)) return std::nullopt;
  std::string code = text.substr(head);
  if (text.substr(kMark.size(), kDigits) != digits(hash_of({code}))) return std::nullopt;
  return code;
}

void CodeCache::keep(std::uint64_t key, const std::string& code) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  // Under a name of its own first: who reads meanwhile finds the whole file, or none.
  std::string part = path(key) + ".XXXXXX";
  const int handle = mkstemp(part.data());
  if (handle < 0) return;
  std::FILE* const file = fdopen(handle, "w");
  if (file == nullptr) {
    close(handle);
    std::filesystem::remove(part, error);
    return;
  }
  const std::string text = std::string(kMark) + digits(hash_of({code})) + code;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written) std::filesystem::rename(part, path(key), error);
  std::filesystem::remove(part, error);  // there only where something went wrong
}

}  // namespace cpufree
