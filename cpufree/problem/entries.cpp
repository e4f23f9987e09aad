#include "cpufree/problem/entries.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

// Where `column` is among the sorted columns of a row, or -1. Without branches that depend on the
// columns: they would be mispredicted half of the time.
template <class T>
std::int64_t find(const CsrView<T>& a, std::int32_t row, std::int32_t column) {
  const std::int32_t* first = a.col.data() + a.row_ptr[at(row)];
  std::int64_t count = a.row_nnz(row);
  if (count == 0) return -1;
  while (count > 1) {
    const std::int64_t half = count / 2;
    first += first[half] <= column ? half : 0;
    count -= half;
  }
  return *first == column ? first - a.col.data() : -1;
}

template <class T>
double root_of_diagonal(const CsrView<T>& a, std::int32_t row) {
  const std::int64_t k = find(a, row, row);
  return k < 0 ? 0.0 : std::sqrt(std::abs(static_cast<double>(a.val[at(k)])));
}

// What has been seen of some rows.
struct Seen {
  EntryReport entries;
  std::int64_t above = 0, below = 0;  // the diagonal
};

// Finds the mirror images of the entries of rows that are asked for one after the other. Where
// (j, i - 1) and (j, i) are both there, they lie side by side: of matrices whose rows come in
// groups of one pattern, most are found so. On grids, most lie as far into their row as that of the
// row before's entry lay in its own. The others are found by bisection.
template <class T>
class Mirrors {
 public:
  explicit Mirrors(const CsrView<T>& a) : a_(a) {}

  // `most`: entries that will be asked for.
  void begin_row(std::int32_t row, std::int64_t most) {
    row_ = row;
    here_[at(count_)].column = std::numeric_limits<std::int32_t>::max();  // none is behind
    before_.swap(here_);
    if (here_.size() <= at(most)) here_.resize(2 * at(most) + 1);
    if (into_.size() < at(most)) into_.resize(2 * at(most), 0);
    next_ = before_.data();
    count_ = asked_ = 0;
  }
  // Where (column, row) is stored, or -1; columns increase.
  std::int64_t find_for(std::int32_t column) {
    while (next_->column < column) ++next_;
    const std::int64_t first = a_.row_ptr[at(column)];
    std::int64_t& into = into_[at(asked_++)];
    std::int64_t place = next_->column == column ? next_->place + 1 : first + into;
    if (!lies_at(place, column) && !lies_at(place = first + into, column))
      place = find(a_, column, row_);
    if (place < 0) return -1;
    into = place - first;
    here_[at(count_++)] = {column, place};
    return place;
  }

 private:
  bool lies_at(std::int64_t place, std::int32_t column) const {
    return place < a_.row_ptr[at(column) + 1] && a_.col[at(place)] == row_;
  }

  struct Found {
    std::int32_t column = 0;
    std::int64_t place = 0;
  };
  const CsrView<T>& a_;
  std::int32_t row_ = 0;
  std::vector<Found> before_{1}, here_{1};  // of the row before, of this one
  std::int64_t count_ = 0;                  // of the latter
  std::vector<std::int64_t> into_;  // of the row's k-th: how far into its row the image lay last
  std::int64_t asked_ = 0;          // entries of this row until now
  const Found* next_ = nullptr;     // of the former
};

template <class T>
void compare(const CsrView<T>& a, std::int32_t row, std::int32_t column, T here, T there,
             EntryReport& entries) {
  if (here == there) return;
  entries.symmetric = false;
  // Roots first: the product of two diagonal entries may overflow.
  const double scale = root_of_diagonal(a, row) * root_of_diagonal(a, column);
  const double apart = std::abs(static_cast<double>(here) - static_cast<double>(there));
  entries.asymmetry = std::max(entries.asymmetry, apart / scale);
}

// By their exponents, which compilers compare several at a time.
template <class T>
bool all_finite(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits other = 0;
  for (const T value : values)
    other |= (std::bit_cast<Bits>(value) & kExponent) == kExponent ? Bits{1} : Bits{0};
  return other == 0;
}

// Where the diagonal entry of a row is, or would be. `into`: how far into the row before it was.
template <class T>
std::int64_t place_of_diagonal(const CsrView<T>& a, std::int32_t row, std::int64_t& into) {
  const std::int64_t first = a.row_ptr[at(row)], end = a.row_ptr[at(row) + 1];
  std::int64_t k = first + into;
  if (k < end && a.col[at(k)] == row) return k;
  k = std::lower_bound(a.col.begin() + first, a.col.begin() + end, row) - a.col.begin();
  into = k - first;
  return k;
}

template <class T>
void inspect_row(const CsrView<T>& a, std::int32_t row, std::int64_t& into, Mirrors<T>& mirrors,
                 Seen& seen) {
  const std::int64_t first = a.row_ptr[at(row)];
  const std::int64_t end = a.row_ptr[at(row) + 1];
  std::int64_t k = place_of_diagonal(a, row, into);
  seen.below += k - first;
  const bool diagonal = k < end && a.col[at(k)] == row;
  if (!diagonal || !(a.val[at(k)] > 0)) seen.entries.positive_diagonal = false;
  if (diagonal) ++k;
  seen.above += end - k;
  mirrors.begin_row(row, end - k);
  for (; k < end; ++k) {
    const std::int64_t mirror = mirrors.find_for(a.col[at(k)]);
    if (mirror >= 0)
      compare(a, row, a.col[at(k)], a.val[at(k)], a.val[at(mirror)], seen.entries);
    else
      seen.entries.mirrored = false;
  }
}

template <class T>
Seen inspect_rows(const CsrView<T>& a, RowRange rows) {
  constexpr std::int32_t kTogether = 64;  // rows: their values stay in the first cache
  Seen seen;
  Mirrors<T> mirrors(a);
  std::int64_t into = 0;
  for (std::int32_t begin = rows.begin; begin < rows.end; begin += kTogether) {
    const std::int32_t end = std::min(begin + kTogether, rows.end);
    const std::int64_t first = a.row_ptr[at(begin)];
    if (!all_finite(a.val.subspan(at(first), at(a.row_ptr[at(end)] - first))))
      seen.entries.finite = false;
    for (std::int32_t row = begin; row < end; ++row) inspect_row(a, row, into, mirrors, seen);
  }
  return seen;
}

void join(Seen& all, const Seen& some) {
  all.above += some.above;
  all.below += some.below;
  EntryReport& a = all.entries;
  const EntryReport& s = some.entries;
  a.mirrored = a.mirrored && s.mirrored;
  a.symmetric = a.symmetric && s.symmetric;
  a.finite = a.finite && s.finite;
  a.positive_diagonal = a.positive_diagonal && s.positive_diagonal;
  a.asymmetry = std::max(a.asymmetry, s.asymmetry);
}

}  // namespace

template <class I>
bool are_rows(std::span<const std::int64_t> row_ptr, std::span<const I> col) {
  const auto all = static_cast<std::int64_t>(col.size());
  if (row_ptr.empty() || row_ptr.front() != 0 || row_ptr.back() != all) return false;
  const auto n = static_cast<I>(row_ptr.size() - 1);
  std::atomic<bool> sound = true;
  for_chunks(row_ptr, [&](RowRange chunk) {
    bool here = true;
    for (std::int32_t row = chunk.begin; row < chunk.end; ++row) {
      I before = -1;
      const std::int64_t begin = row_ptr[at(row)], end = row_ptr[at(row) + 1];
      if (begin < 0 || begin > end || end > all) {
        here = false;
        break;
      }
      for (std::int64_t k = begin; k < end; ++k) {
        here &= before < col[at(k)];
        before = col[at(k)];
      }
      here &= before < n;
    }
    if (!here) sound = false;
  });
  return sound;
}

PageVector<std::int64_t> widened(std::span<const std::int32_t> numbers) {
  constexpr std::size_t kOfTask = std::size_t{1} << 18;
  PageVector<std::int64_t> wide(numbers.size());
  in_parallel(static_cast<int>((numbers.size() + kOfTask - 1) / kOfTask), [&](int task) {
    const auto mine = numbers.subspan(at(task) * kOfTask);
    std::copy_n(mine.begin(), std::min(mine.size(), kOfTask), wide.data() + at(task) * kOfTask);
  });
  return wide;
}

template <class T>
EntryReport inspect(const CsrView<T>& a) {
  Seen all;
  std::mutex mutex;
  for_chunks(a.row_ptr, [&](RowRange chunk) {
    const Seen some = inspect_rows(a, chunk);
    const std::lock_guard lock(mutex);
    join(all, some);
  });
  all.entries.mirrored = all.entries.mirrored && all.above == all.below;
  return all.entries;
}

template <class T>
T largest_entry(std::span<const T> values) {
  constexpr std::size_t kLanes = 8;  // so that compilers compare several at a time
  const int tasks = parts_for_threads(static_cast<std::int64_t>(values.size()));
  std::vector<T> most(at(tasks), T{0});
  in_parallel(tasks, [&](int task) {
    const std::size_t first = values.size() * at(task) / at(tasks);
    const auto mine = values.subspan(first, values.size() * (at(task) + 1) / at(tasks) - first);
    T lanes[kLanes] = {};
    std::size_t k = 0;
    for (; k + kLanes <= mine.size(); k += kLanes)
      for (std::size_t l = 0; l < kLanes; ++l)
        lanes[l] = mine[k + l] > lanes[l] ? mine[k + l] : lanes[l];
    for (; k < mine.size(); ++k) lanes[0] = std::max(lanes[0], mine[k]);
    most[at(task)] = *std::ranges::max_element(lanes);
  });
  return *std::ranges::max_element(most);
}

template <class T>
int range_exponent(std::span<const T> values) {
  constexpr int kNear = sizeof(T) == sizeof(float) ? 24 : 128;  // powers of two that stay
  const T most = largest_entry(values);
  if (!std::isfinite(most)) return 0;
  int exponent = 0;
  std::frexp(most, &exponent);
  return std::abs(exponent) <= kNear ? 0 : exponent;
}

namespace {

template <class T>
bool row_sums_to_zero(const CsrView<T>& a, std::int64_t row, int unknowns, double tolerance) {
  for (int unknown = 0; unknown < unknowns; ++unknown) {
    double sum = 0.0, amount = 0.0;
    for (std::int64_t k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k) {
      if (unknowns > 1 && a.col[at(k)] % unknowns != unknown) continue;
      const auto value = static_cast<double>(a.val[at(k)]);
      sum += value;
      amount += std::abs(value);
    }
    if (!(std::abs(sum) <= tolerance * amount)) return false;
  }
  return true;
}
}  // namespace

template <class T>
bool maps_to_zero(const CsrView<T>& a, int unknowns, double tolerance) {
  constexpr std::int64_t kSample = 64;
  for (std::int64_t k = 0; k < kSample && a.n > 0; ++k)
    if (!row_sums_to_zero(a, (a.n - 1) * k / (kSample - 1), unknowns, tolerance)) return false;
  std::atomic<bool> all = true;
  for_chunks(a.row_ptr, [&](RowRange chunk) {
    for (std::int32_t row = chunk.begin; row < chunk.end; ++row) {
      if (row_sums_to_zero(a, row, unknowns, tolerance)) continue;
      all = false;
      return;
    }
  });
  return all;
}

template bool maps_to_zero(const CsrView<float>&, int, double);
template bool maps_to_zero(const CsrView<double>&, int, double);

template <class T>
double residual_norm(const CsrView<T>& a, std::span<const double> b, std::span<const double> x) {
  constexpr std::int32_t kRowsOfTask = 1 << 13;
  std::vector<double> squares(at(a.n / kRowsOfTask + 1), 0.0);
  in_parallel(static_cast<int>(squares.size()), [&](int task) {
    const std::int64_t first = std::int64_t{task} * kRowsOfTask;
    double sum = 0.0;
    for (std::int64_t i = first; i < std::min<std::int64_t>(a.n, first + kRowsOfTask); ++i) {
      double product = 0.0;
      for (std::int64_t k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
        product += static_cast<double>(a.val[at(k)]) * x[at(a.col[at(k)])];
      const double rest = b[at(i)] - product;
      sum += rest * rest;
    }
    squares[at(task)] = sum;
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

template double residual_norm<double>(const CsrView<double>&, std::span<const double>,
                                      std::span<const double>);
template double residual_norm<float>(const CsrView<float>&, std::span<const double>,
                                     std::span<const double>);

double mean_distance(std::span<const std::int64_t> row_ptr, std::span<const std::int32_t> col,
                     std::span<const std::int32_t> place, std::span<const std::int32_t> part) {
  constexpr std::int32_t kGroup = 64;  // rows
  // A prime, and so no divisor of what numbers of rows in lines of grids have.
  const std::int32_t step = row_ptr.back() > kLookedAtAll ? 13 : 1;  // groups
  std::atomic<std::int64_t> sum = 0, count = 0;
  for_chunks(row_ptr, [&](RowRange chunk) {
    std::int64_t sum_here = 0, count_here = 0;
    for (std::int32_t row = chunk.begin; row < chunk.end; ++row) {
      if (row / kGroup % step != 0) {
        row += kGroup - 1 - row % kGroup;
        continue;
      }
      const std::int32_t here = place.empty() ? row : place[at(row)];
      for (std::int64_t k = row_ptr[at(row)]; k < row_ptr[at(row) + 1]; ++k) {
        const std::int32_t column = col[at(k)];
        if (!part.empty() && part[at(column)] != part[at(row)]) continue;
        sum_here += std::abs(here - (place.empty() ? column : place[at(column)]));
        ++count_here;
      }
    }
    sum += sum_here;
    count += count_here;
  });
  return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
}

template bool are_rows(std::span<const std::int64_t>, std::span<const std::int32_t>);
template bool are_rows(std::span<const std::int64_t>, std::span<const std::int64_t>);
template EntryReport inspect(const CsrView<float>&);
template EntryReport inspect(const CsrView<double>&);
template float largest_entry(std::span<const float>);
template double largest_entry(std::span<const double>);
template int range_exponent(std::span<const float>);
template int range_exponent(std::span<const double>);

}  // namespace cpufree
