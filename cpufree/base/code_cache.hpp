// Code that was compiled on this machine, on disk: kernels of solvers and of programs, for CPUs and
// GPUs. One file for each, named by a hash of all that the code depends on.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cpufree {

// FNV-1a (Fowler, Noll, Vo 1991), 64 bits, of all texts, each with its length behind it: what ends
// one and begins the next counts.
std::uint64_t hash_of(std::initializer_list<std::string_view> texts);
// A hash as a name: 16 hexadecimal digits.
std::string digits_of(std::uint64_t hash);

// The right to make a code, held until the object ends; other processes wait for it. A process that
// dies gives it up.
class CodeClaim {
 public:
  explicit CodeClaim(int handle = -1) : handle_(handle) {}
  CodeClaim(CodeClaim&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  CodeClaim& operator=(CodeClaim&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CodeClaim();

 private:
  int handle_;  // of a locked file; -1: of none
};

// A file holds the code and behind it a mark and a checksum: shared objects load with them as
// without. It is written under a name of its own and renamed, so that a reader finds a whole file
// or none; a file that was cut off or changed counts as none, and is replaced.
class CodeCache {
 public:
  // A folder is made when first needed. Code is looked for in all of them, in their order, and kept
  // in the first that can be written. No folder, or an empty name: nothing is kept.
  explicit CodeCache(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  explicit CodeCache(std::string folder) : CodeCache(std::vector{std::move(folder)}) {}

  // The code of that key, and the path of its file; none where no folder has a whole file of it.
  std::optional<std::string> find(std::string_view key) const;
  std::optional<std::string> find_file(std::string_view key) const;
  // Keeps code, and returns the path of its file. None where that fails (no room, no rights): the
  // code is compiled again another time.
  std::optional<std::string> keep(std::string_view key, const std::string& code) const;
  // Waits until no other process makes the code of that key, `limit` at most: a compiler that hangs
  // elsewhere must not stop this process. Where files cannot be locked there is no waiting.
  CodeClaim claim(std::string_view key,
                  std::chrono::seconds limit = std::chrono::seconds(600)) const;

 private:
  std::vector<std::string> folders_;
};

}  // namespace cpufree
