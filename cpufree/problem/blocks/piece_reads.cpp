#include "cpufree/problem/blocks/piece_reads.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

namespace {

// Counts the rows that pieces read of others, by a bit for each row: that stays in a cache. The
// arrays are not checked yet: what is out of range is passed over.
template <class T>
class PieceReader {
 public:
  explicit PieceReader(const CsrView<T>& matrix) : matrix_(matrix), read_(at(matrix.n) / 32 + 1) {}

  std::int64_t reads_of(RowRange piece) {
    std::int64_t reads = 0;
    const auto all = static_cast<std::int64_t>(matrix_.col.size());
    const std::int64_t end = std::min(matrix_.row_ptr[at(piece.end)], all);
    for (std::int64_t e = std::max<std::int64_t>(matrix_.row_ptr[at(piece.begin)], 0); e < end;
         ++e) {
      const std::int32_t column = matrix_.col[at(e)];
      if (column >= piece.begin && column < piece.end) continue;
      if (column < 0 || column >= matrix_.n) continue;
      std::uint32_t& word = read_[at(column / 32)];
      const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(column % 32);
      if ((word & bit) != 0) continue;
      if (word == 0) touched_.push_back(column / 32);
      word |= bit;
      ++reads;
    }
    for (const std::int32_t word : touched_) read_[at(word)] = 0;
    touched_.clear();
    return reads;
  }

 private:
  const CsrView<T>& matrix_;
  std::vector<std::uint32_t> read_;
  std::vector<std::int32_t> touched_;  // words of it that are not 0
};

}  // namespace

template <class T>
bool pieces_read_more(const CsrView<T>& matrix, std::span<const std::int64_t> cuts, int blocks,
                      std::int64_t most) {
  std::vector<RowRange> pieces;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const RowRange rows{static_cast<std::int32_t>(cuts[k]), static_cast<std::int32_t>(cuts[k + 1])};
    for (const RowRange& piece : split_rows(matrix.row_ptr, rows, blocks)) pieces.push_back(piece);
  }
  const int readers = std::min(parts_for_threads(matrix.nnz()), available_cores());
  std::atomic<std::int64_t> reads = 0;
  std::atomic<std::size_t> next = 0;
  in_parallel(readers, [&](int) {
    PieceReader<T> reader(matrix);
    for (std::size_t k = next++; k < pieces.size() && reads <= most; k = next++)
      reads += reader.reads_of(pieces[k]);
  });
  return reads > most;
}

template bool pieces_read_more(const CsrView<float>&, std::span<const std::int64_t>, int,
                               std::int64_t);
template bool pieces_read_more(const CsrView<double>&, std::span<const std::int64_t>, int,
                               std::int64_t);

}  // namespace cpufree
