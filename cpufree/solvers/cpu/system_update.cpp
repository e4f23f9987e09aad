// New values for a CpuSystem.
#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/row_values.hpp"
#include "cpufree/solvers/cpu/system.hpp"

namespace cpufree {

// Writes the values of one share, and its inverse diagonal.
template <class T>
DiagonalFacts CpuSystem<T>::rewrite(const CsrView<T>& matrix, Pe& pe, Share& share) const {
  const LocalSystem<T>& local = pe.local;
  DiagonalFacts facts;
  std::size_t slice = 0;
  for (const RowRange range : {share.plan.interior, share.plan.boundary})
    for (std::int32_t first = range.begin; first < range.end; first += kWidth, ++slice) {
      const std::int32_t rows = std::min(kWidth, range.end - first);
      std::array<RowValues<T>, at(kWidth)> values;
      for (std::int32_t l = 0; l < rows; ++l)
        values[at(l)] = {matrix, local.global_row[at(first + l)]};
      each_entry(share.slices, slice, [&](int l, std::int32_t column, std::size_t place) {
        share.slices.val[place] = values[at(l)].at_column(local.name_of(column));
      });
      invert_diagonal(pe, share, slice, first, rows, facts);
    }
  return facts;
}

// Values are stored as they are: all fit.
template <class T>
bool CpuSystem<T>::update(const CsrView<T>& matrix) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone) throw SystemBusy();
  require_usable(usable_);
  require_update(matrix, rows_, report_);
  if (single_values_) require_singles(matrix);
  usable_ = false;
  std::vector<DiagonalFacts> found(pes_.size() * at(blocks_));
  in_parallel(static_cast<int>(found.size()), [&](int k) {
    Pe& pe = pes_[at(k / blocks_)];
    Share& share = pe.shares[at(k % blocks_)];
    found[at(k)] = rewrite(matrix, pe, share);
    if (single_values_) share.round_values();
  });
  take_diagonals(found);
  make_factors([&](std::size_t k) { return own_rows_of(matrix, pes_[k].local.global_row); });
  show_factors();
  if (multigrid_ && !update_multigrid(matrix)) return false;
  usable_ = true;
  return true;
}

template bool CpuSystem<float>::update(const CsrView<float>&);
template bool CpuSystem<double>::update(const CsrView<double>&);

}  // namespace cpufree
