#include "cpufree/library/held_system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cpufree/distributed/slab_check.hpp"
#include "cpufree/plugins/cpu/levels.hpp"
#include "cpufree/problem/entries.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

// Throws InvalidInput or BadEntry where a matrix cannot be solved, as far as its entries show it;
// without `values`, where its pattern is none of a symmetric matrix.
template <class T>
void check_matrix(const CsrView<T>& a, bool values) {
  const RowSlab<T, std::int32_t> whole{0, a.n, a.row_ptr, a.col, a.val};
  if (!are_rows(a.row_ptr, a.col)) {
    find_boundary(whole);  // which says what is wrong
    throw InvalidInput("row_ptr and col are no rows of a square matrix");
  }
  const EntryReport seen = inspect(a);
  const double most = values ? kSymmetryTolerance<T> : std::numeric_limits<double>::infinity();
  const bool sound = seen.finite && seen.positive_diagonal && seen.asymmetry <= most;
  if (seen.mirrored && (sound || !values)) return;
  check_own_entries(whole, {most});
  throw InvalidInput("the pattern of the matrix is not symmetric: store both triangles");
}

void check_processor(const SystemSpec& spec) {
  if (spec.engine != Engine::cpu_threads) return;
  const std::string lacks = cpu_lacks();
  if (!lacks.empty())
    throw Unsupported("this libcpufree was built for a processor with " + lacks +
                      ", which this one lacks: build it with -DCPUFREE_NATIVE=OFF");
}

}  // namespace

template <class T>
HeldSystem<T>::HeldSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                          std::span<const std::int32_t> order, SystemSpec spec, bool check)
    : rows_(matrix.n),
      nonzeros_(matrix.nnz()),
      part_(part.begin(), part.end()),
      order_(order.begin(), order.end()),
      spec_(std::move(spec)),
      check_(check) {
  check_processor(spec_);
  check_matrix(matrix, check_);
  row_ptr_ = digest_of(std::as_bytes(matrix.row_ptr));
  col_ = digest_of(std::as_bytes(matrix.col));
  if (spec_.factors.near && !spec_.factors.near->node.empty()) {
    require(static_cast<std::int64_t>(spec_.factors.near->node.size()) == rows_,
            "node has one number for each row");
    if (part_.empty()) part_ = contiguous_partition(matrix.row_ptr, spec_.pes);
    part_ = multigrid::with_whole_nodes(part_, spec_.factors.near->node);
  }
  system_ = at_scale(matrix, [&](const CsrView<T>& scaled) {
    return make_system<T>(scaled, part_, order_, spec_);
  });
}

template <class T>
template <class F>
auto HeldSystem<T>::at_scale(const CsrView<T>& matrix, F&& f) {
  const int exponent = range_exponent(matrix.val);
  if (exponent == 0) {
    exponent_ = 0;
    return f(matrix);
  }
  std::vector<T> scaled(matrix.val.size());
  std::ranges::transform(matrix.val, scaled.begin(),
                         [&](T value) { return std::ldexp(value, -exponent); });
  CsrView<T> view = matrix;
  view.val = scaled;
  exponent_ = exponent;
  return f(view);
}

template <class T>
void HeldSystem<T>::check_pattern(const CsrView<T>& matrix) const {
  const std::string same =
      ": update takes new values of the same pattern (store 0 where an entry "
      "has become 0); create a new solver for another one";
  require(matrix.n == rows_, "the matrix has " + std::to_string(matrix.n) +
                                 " rows, that of this solver " + std::to_string(rows_) + same);
  require(matrix.nnz() == nonzeros_, "the matrix has " + std::to_string(matrix.nnz()) +
                                         " nonzeros, that of this solver " +
                                         std::to_string(nonzeros_) + same);
  require(digest_of(std::as_bytes(matrix.row_ptr)) == row_ptr_ &&
              digest_of(std::as_bytes(matrix.col)) == col_,
          "the matrix has entries at other places than that of this solver" + same);
}

template <class T>
void HeldSystem<T>::update(const CsrView<T>& matrix, bool fresh) {
  system();
  check_pattern(matrix);
  check_matrix(matrix, check_);
  const int before = exponent_;
  try {
    at_scale(matrix, [&](const CsrView<T>& scaled) {
      const bool keep = !fresh || system_->plan().levels.empty();
      if (keep && system_->update(scaled)) return;
      system_.reset();  // there may not be memory for both
      system_ = make_system<T>(scaled, part_, order_, spec_);
    });
  } catch (...) {
    exponent_ = before;  // what is left, if anything, are the old values
    throw;
  }
}

template <class T>
SolveResult HeldSystem<T>::solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> x,
                                 const SolveSpec& spec, const Progress& progress) {
  if (exponent_ == 0) return system().solve(b, x0, x, spec, progress);
  if (!x.on_host())
    throw Unsupported(
        "the largest entry of the matrix lies at an end of the range of its type: vectors on a GPU "
        "cannot be scaled; give vectors in host memory");
  std::vector<T> guess(x0.data, x0.data + x0.size);
  for (T& value : guess) value = std::ldexp(value, exponent_);
  SolveResult result = system().solve(b, {guess.data(), guess.size()}, x, spec, progress);
  if (!scale_solution(x.span())) result.outcome.reason = Reason::diverged_nanorinf;
  return result;
}

// Makes x that of the caller's matrix. Returns whether it has stayed in the range of its type.
template <class T>
bool HeldSystem<T>::scale_solution(std::span<T> x) const {
  T before{0}, after{0};
  for (T& value : x) {
    before = std::max(before, std::abs(value));
    value = std::ldexp(value, -exponent_);
    after = std::max(after, std::abs(value));
  }
  return before == T{0} || (after >= std::numeric_limits<T>::min() && std::isfinite(after));
}

template <class T>
System<T>& HeldSystem<T>::system() const {
  if (!system_)
    throw EngineError(
        "an update has failed, and the values of this solver are gone: create a new "
        "one");
  return *system_;
}

template <class T>
const PlanReport& HeldSystem<T>::plan() const {
  return system().plan();
}

template class HeldSystem<float>;
template class HeldSystem<double>;

}  // namespace cpufree
