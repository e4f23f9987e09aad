// Machine code of kernels on disk: a file for each, named by a hash of all that it depends on.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cpufree {

// FNV-1a (Fowler, Noll, Vo 1991), 64 bits, of all texts, each with its length behind it: what ends
// one and begins the next counts.
std::uint64_t hash_of(std::initializer_list<std::string_view> texts);

class CodeCache {
 public:
  // `folder`: made when first needed; empty: nothing is kept.
  explicit CodeCache(std::string folder) : folder_(std::move(folder)) {}

  // The code of that key; none where there is no file of it, or a damaged one.
  std::optional<std::string> find(std::uint64_t key) const;
  // Keeps code. Where that fails (no room, no rights) it will be compiled again another time.
  void keep(std::uint64_t key, const std::string& code) const;

 private:
  std::string path(std::uint64_t key) const;
  std::string folder_;
};

}  // namespace cpufree
