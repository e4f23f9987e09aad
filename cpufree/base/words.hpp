// First lines of the system's files, word by word. Without streams: where the C++ library is linked
// into the extension and another copy of it is loaded, those that convert numbers crash, as the two
// share what a locale is known by.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cpufree {

// All of a file of the system; empty where it cannot be read.
inline std::string text_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"),
                                                             &std::fclose);
  std::string text;
  if (file == nullptr) return text;
  char part[512];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file.get()))
    text.append(part, count);
  return text;
}

// The word number `k`, from 0, of a text; empty where it has fewer.
inline std::string_view word(std::string_view text, int k) {
  constexpr std::string_view kBlanks = " \t\n";
  std::size_t begin = text.find_first_not_of(kBlanks);
  for (; k > 0 && begin != std::string_view::npos; --k)
    begin = text.find_first_not_of(kBlanks, text.find_first_of(kBlanks, begin));
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_first_of(kBlanks, begin) - begin);
}

// The whole number with which a word begins.
inline std::optional<long long> number(std::string_view word) {
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace cpufree
