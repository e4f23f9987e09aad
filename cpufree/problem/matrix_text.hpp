// Entries of sparse matrices in text, a line each, parsed on all cores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cpufree/base/pages.hpp"

namespace cpufree {

// Where the entries of a text go, from place `next` on. One of `real` and `whole` is filled, or
// neither: then lines hold a row and a column alone. Numbers of rows and columns count from 1 in
// the text, up to `n_rows` and `n_columns`, and from 0 here.
struct TextTarget {
  std::int64_t n_rows = 0, n_columns = 0;
  std::span<std::int32_t> row, col;
  std::span<double> real;
  std::span<std::int64_t> whole;
  std::int64_t next = 0;
};

// Parses lines of "row column value", separated by blanks, into the target. Returns how many there
// were, or -1 where one is anything else, in spelling or in value: who reads the text another way
// then finds out what. Values have the bits that are nearest to what is written. `text` ends where
// a line ends.
std::int64_t parse_entries(std::string_view text, const TextTarget& target);

// The same for the bytes of a file from `begin` to `end`, of which each core reads and parses its
// own, 1 MiB at a time. The last line may lack its end. -1 also where a line has more than 4 KiB,
// or the file cannot be read.
std::int64_t parse_entries_of_file(int file, std::int64_t begin, std::int64_t end,
                                   const TextTarget& target);

struct CsrArrays {
  PageVector<std::int64_t> row_ptr;
  PageVector<std::int32_t> col;
  PageVector<double> val;
};

// The rows of a square matrix out of entries in any order, columns increasing. `mirror`: an entry
// off the diagonal stands for its mirror image, too. Nothing where an entry is there twice.
std::optional<CsrArrays> rows_of_entries(std::span<const std::int32_t> row,
                                         std::span<const std::int32_t> col,
                                         std::span<const double> val, std::int32_t n, bool mirror);

}  // namespace cpufree
