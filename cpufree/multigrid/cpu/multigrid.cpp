#include "cpufree/multigrid/cpu/multigrid.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// f(share, pe, block) for all blocks of all PEs, by all cores.
template <class Parts, class Of, class F>
void for_shares(Parts& parts, Of&& of, F&& f) {
  const std::size_t blocks = of(parts.front()).size();
  in_parallel(static_cast<int>(parts.size() * blocks), [&](int k) {
    const std::size_t pe = at(k) / blocks;
    f(of(parts[pe])[at(k) % blocks], pe);
  });
}

// Writes values into a share of `rows` of a matrix, whose pattern it has, slice by slice: of(lane,
// row) begins a row of a slice, of(lane, row, column) is an entry of it.
template <class F>
void take_values(const std::vector<std::int32_t>& rows, const LocalSystem<float>& columns,
                 CpuShare<float>& share, F&& of) {
  std::size_t slice = 0;
  constexpr std::int32_t kWidth = CpuShare<float>::kWidth;
  for (const RowRange range : {share.plan.interior, share.plan.boundary})
    for (std::int32_t first = range.begin; first < range.end; first += kWidth, ++slice) {
      for (std::int32_t l = 0; l < std::min(kWidth, range.end - first); ++l)
        of.begin(l, rows[at(first + l)]);
      each_entry(share.slices, slice, [&](int l, std::int32_t column, std::size_t place) {
        share.slices.val[place] = static_cast<float>(of.at_column(l, columns.name_of(column)));
      });
    }
}

// Where to look for a row's values: those of a sparse matrix,
struct Scattered {
  explicit Scattered(const multigrid::SparseMatrix& of) : matrix(of) {
    for (auto& values : of_column) values.resize(at(of.columns));
  }
  void begin(int lane, std::int32_t row) {
    for (std::int64_t k = matrix.begin(row); k < matrix.end(row); ++k)
      of_column[at(lane)][at(matrix.col[at(k)])] = static_cast<float>(matrix.val[at(k)]);
  }
  float at_column(int lane, std::int32_t column) const { return of_column[at(lane)][at(column)]; }

  const multigrid::SparseMatrix& matrix;
  // Where a row has no entry, values are those of another one, and not asked for.
  std::array<std::vector<float>, at(CpuShare<float>::kWidth)> of_column;
};
// and of a dense one.
struct Dense {
  void begin(int lane, std::int32_t row) { first[at(lane)] = at(row) * size; }
  double at_column(int lane, std::int32_t column) const {
    return values[first[at(lane)] + at(column)];
  }

  const std::vector<double>& values;
  std::size_t size;
  std::array<std::size_t, at(CpuShare<float>::kWidth)> first = {};
};

}  // namespace

template <class T>
CpuMultigrid<T>::CpuMultigrid(multigrid::Hierarchy hierarchy, const OwnPes& own, LevelPlan first,
                              const SharesOfA& of_a)
    : reports_(report_of(hierarchy)), why_(hierarchy.why), args_(at(own.here)) {
  gathered_ = hierarchy.gathered;
  if (gathered_ > 0) extent_.gathered = hierarchy.levels[gathered_].owner.size();
  const int blocks = static_cast<int>(first.blocks.front().size());
  LevelPlan fine = std::move(first);
  add_level(fine, of_a);
  fill_first_level(hierarchy.scale, of_a);
  hierarchy.levels.front().matrix = {};
  for (std::size_t l = 1; l < hierarchy.levels.size(); ++l) {
    LevelPlan coarse = plan_of_level(hierarchy, l, own, blocks);
    hierarchy.levels[l].matrix = {};
    add_level(coarse);
    add_transfers(plan_of_transfers(hierarchy, l - 1, fine, coarse, own), l - 1, l == gathered_);
    hierarchy.levels[l - 1].prolongator = {};
    fine = std::move(coarse);
  }
  levels_.back().solves = !hierarchy.inverse.empty();
  finish(std::move(hierarchy));
}

template <class T>
void CpuMultigrid<T>::finish(multigrid::Hierarchy hierarchy) {
  for (std::size_t l = 0; l < levels_.size(); ++l) levels_[l].lambda = hierarchy.levels[l].lambda;
  coarsenings_ = std::move(hierarchy.coarsenings);
}

template <class T>
bool CpuMultigrid<T>::same_patterns(const multigrid::Hierarchy& hierarchy) const {
  const auto others = report_of(hierarchy);
  return std::ranges::equal(reports_, others, [](const LevelReport& a, const LevelReport& b) {
    return a.rows == b.rows && a.nonzeros == b.nonzeros && a.inverted == b.inverted &&
           a.transfer_nonzeros == b.transfer_nonzeros;
  });
}

template <class T>
bool CpuMultigrid<T>::rewrite(multigrid::Hierarchy hierarchy, const SharesOfA& of_a) {
  if (!same_patterns(hierarchy)) return false;
  fill_first_level(hierarchy.scale, of_a);
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if (l > 0) rewrite_level(hierarchy, l);
    if (l + 1 < levels_.size()) rewrite_transfers(hierarchy.levels[l].prolongator, l);
  }
  finish(std::move(hierarchy));
  return true;
}

template <class T>
void CpuMultigrid<T>::rewrite_level(const multigrid::Hierarchy& hierarchy, std::size_t l) {
  auto& parts = levels_[l].parts;
  const multigrid::SparseMatrix& matrix = hierarchy.levels[l].matrix;
  for_shares(
      parts, [](Part& part) -> auto& { return part.shares; },
      [&](CpuShare<float>& share, std::size_t pe) {
        const LocalSystem<float>& local = parts[pe].local;
        if (levels_[l].solves)
          take_values(local.global_row, local, share, Dense{hierarchy.inverse, at(matrix.rows())});
        else
          take_values(local.global_row, local, share, Scattered(matrix));
      });
}

template <class T>
void CpuMultigrid<T>::rewrite_transfers(const multigrid::SparseMatrix& up, std::size_t l) {
  auto& parts = levels_[l].parts;
  const auto& below = levels_[l + 1].parts;
  const multigrid::SparseMatrix down = transpose(up);
  for_shares(
      parts, [](Part& part) -> auto& { return part.prolongation; },
      [&](CpuShare<float>& share, std::size_t pe) {
        take_values(parts[pe].local.global_row, below[pe].local, share, Scattered(up));
      });
  for_shares(
      parts, [](Part& part) -> auto& { return part.restriction; },
      [&](CpuShare<float>& share, std::size_t pe) {
        const bool gathers = l + 1 == gathered_;
        take_values(gathers ? parts[pe].gathers : below[pe].local.global_row, parts[pe].local,
                    share, Scattered(down));
      });
}

// Leaves the plan without its entries. `of_a`: for the first level, whose values are not written.
template <class T>
void CpuMultigrid<T>::add_level(LevelPlan& plan, const SharesOfA& of_a) {
  Level& level = levels_.emplace_back();
  level.parts.resize(plan.plan.local.size());
  extent_.rows_and_ghosts.push_back(plan.rows_and_ghosts);
  for (std::size_t pe = 0; pe < level.parts.size(); ++pe) {
    Part& part = level.parts[pe];
    for (const BlockPlan& block : plan.blocks[pe]) part.shares.emplace_back().plan = block;
    for (auto& vector : part.vectors) vector = Array<float>(at(plan.plan.local[pe].rows()));
  }
  if (of_a.empty())
    for_shares(
        level.parts, [](Part& part) -> auto& { return part.shares; },
        [&](CpuShare<float>& share, std::size_t pe) {
          share.make(plan.plan.local[pe], Indices::narrow);
        });
  for (std::size_t pe = 0; pe < level.parts.size(); ++pe) {
    LocalSystem<float>& local = plan.plan.local[pe];
    local.col = {}, local.val = {}, local.row_ptr = {};
    level.parts[pe].local = local;
    if (of_a.empty())
      for (const auto& share : level.parts[pe].shares)
        reports_[levels_.size() - 1].bytes += share.bytes();
  }
}

// Level 0 has the slices of A, with other values. `scale`: D^-1/2 of A.
template <class T>
void CpuMultigrid<T>::fill_first_level(const std::vector<double>& scale, const SharesOfA& of_a) {
  auto& parts = levels_.front().parts;
  std::vector<std::vector<double>> here(parts.size());  // of each PE's columns
  scale_.clear();
  for (std::size_t pe = 0; pe < parts.size(); ++pe) {
    const LocalSystem<float>& local = parts[pe].local;
    for (std::int32_t i = 0; i < local.rows() + local.ghosts; ++i)
      here[pe].push_back(scale[at(local.name_of(i))]);
    scale_.emplace_back(here[pe].begin(), here[pe].begin() + local.rows());
  }
  for_shares(
      parts, [](Part& part) -> auto& { return part.shares; },
      [&](CpuShare<float>& share, std::size_t pe) {
        const auto& s = here[pe];
        share.take_values(of_a[pe][at(&share - parts[pe].shares.data())],
                          [&](std::int32_t i, std::int32_t j, T value) {
                            return i == j ? 1.0 : static_cast<double>(value) * s[at(i)] * s[at(j)];
                          });
      });
  reports_.front().bytes = 0.0;
  for (const Part& part : parts) {
    for (const auto& share : part.shares) reports_.front().bytes += share.value_bytes();
    for (const auto* shares : {&part.restriction, &part.prolongation})
      for (const auto& share : *shares) reports_.front().bytes += share.bytes();
  }
}

template <class T>
void CpuMultigrid<T>::add_transfers(TransferPlan plan, std::size_t l, bool gathers) {
  auto& parts = levels_[l].parts;
  for (std::size_t pe = 0; pe < parts.size(); ++pe) {
    for (const auto& share : parts[pe].shares)
      parts[pe].prolongation.emplace_back().plan = share.plan;
    for (BlockPlan& block : plan.restriction_blocks[pe])
      parts[pe].restriction.emplace_back().plan = std::move(block);
    if (!gathers) continue;
    parts[pe].gathers = plan.restriction.local[pe].global_row;
    parts[pe].gathered = Array<float>(parts[pe].gathers.size());
  }
  for_shares(
      parts, [](Part& part) -> auto& { return part.prolongation; },
      [&](CpuShare<float>& share, std::size_t pe) {
        share.make(plan.prolongation.local[pe], Indices::narrow);
      });
  for_shares(
      parts, [](Part& part) -> auto& { return part.restriction; },
      [&](CpuShare<float>& share, std::size_t pe) {
        share.make(plan.restriction.local[pe], Indices::narrow);
      });
  for (Part& part : parts)
    for (const auto* shares : {&part.restriction, &part.prolongation})
      for (const auto& share : *shares) reports_[l].bytes += share.bytes();
}

template <class T>
CycleLevel<typename CpuMultigrid<T>::Single> CpuMultigrid<T>::arguments(Level& level, Part& part,
                                                                        std::size_t block,
                                                                        const LevelHeap& heap,
                                                                        std::byte* base) {
  CycleLevel<Single> made;
  made.args.vectors.r = part.vectors[0].data();
  made.args.vectors.x = part.vectors[1].data();
  for (int k = 0; k < 2; ++k) made.args.vectors.scratch[k] = heap.scratch[k].at(base);
  made.args.rows = part.local.rows();
  made.args.send_ptr = part.local.send_ptr.data();
  made.args.destinations = part.local.destinations.data();
  made.share = part.shares[block].template view<Single>(heap.flags.at(base), part.local.interior);
  if (!part.prolongation.empty()) {
    const auto transfer_of = [](const CpuShare<float>& share) {
      return TransferShare<Single>{share.matrix<Single>(), share.interior<Single>(),
                                   share.boundary<Single>()};
    };
    made.restriction = transfer_of(part.restriction[block]);
    made.prolongation = transfer_of(part.prolongation[block]);
  }
  made.solves = level.solves;
  set_steps(made, level.lambda);
  return made;
}

// What the PE restricts to, and the board of one of its blocks.
template <class T>
CycleGather CpuMultigrid<T>::gathering(Part& part, std::size_t block, const Heap<T>& heap,
                                       std::byte* base) {
  return {heap.gathered.at(base), part.gathers.data(), part.gathered.data(),
          part.restriction[block].view(heap.gather_flags.at(base), 0).board};
}

template <class T>
void CpuMultigrid<T>::show(const Heap<T>& heap, const CpuHeaps& heaps, const OwnPes& own) {
  of_pe_.assign(args_.size(), {});
  for (std::size_t pe = 0; pe < args_.size(); ++pe) {
    std::byte* const base = heaps.base(own.first + static_cast<int>(pe));
    for (std::size_t block = 0; block < levels_.front().parts[pe].shares.size(); ++block)
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        Part& part = levels_[l].parts[pe];
        of_pe_[pe].push_back(arguments(levels_[l], part, block, heap.levels[l], base));
        if (l + 1 == gathered_) of_pe_[pe].back().gathering = gathering(part, block, heap, base);
      }
    args_[pe] = {of_pe_[pe].data(), static_cast<std::int32_t>(levels_.size()), scale_[pe].data()};
  }
}

template class CpuMultigrid<float>;
template class CpuMultigrid<double>;

}  // namespace cpufree
