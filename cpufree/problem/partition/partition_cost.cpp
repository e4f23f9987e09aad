#include "cpufree/problem/partition/partition_cost.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <ranges>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

using Counts = std::vector<std::int64_t>;

void add(Counts& to, const Counts& from) {
  for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
}

// Rows that PEs read of others: a bit for each pair of a PE and a row, of some PEs at a time, so
// that the bits take 64 MiB at most, unless those of one PE take more.
class Ghosts {
 public:
  Ghosts(std::int64_t rows, int pes) : words_(at((rows + 63) / 64)) {
    constexpr std::size_t kMostWords = std::size_t{8} << 20;
    at_once_ = static_cast<int>(
        std::clamp<std::size_t>(kMostWords / std::max<std::size_t>(words_, 1), 1, at(pes)));
    bits_.resize(words_ * at(at_once_));
  }
  int at_once() const { return at_once_; }
  void clear() { std::ranges::fill(bits_, 0); }
  // Threads may set bits at the same time. Most are set many times: a look is cheaper than a store.
  void set(int pe, std::int32_t row) {
    const std::uint64_t bit = std::uint64_t{1} << (row % 64);
    std::atomic_ref word(bits_[at(pe) * words_ + at(row / 64)]);
    if (!(word.load(std::memory_order_relaxed) & bit))
      word.fetch_or(bit, std::memory_order_relaxed);
  }
  // Calls f for each row that has been set for `pe`, among those of a run of words.
  template <class F>
  void for_each(int pe, std::size_t first, std::size_t last, F&& f) const {
    for (std::size_t w = first; w < last; ++w)
      for (std::uint64_t left = bits_[at(pe) * words_ + w]; left != 0; left &= left - 1)
        f(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  }
  std::size_t words() const { return words_; }

 private:
  std::size_t words_;
  int at_once_ = 1;
  std::vector<std::uint64_t> bits_;
};

// Counts for the readers from `first` on, as many as fit into the bits at once.
class Counter {
 public:
  Counter(std::span<const std::int64_t> row_ptr, std::span<const std::int32_t> col,
          std::span<const std::int32_t> part, int pes)
      : row_ptr_(row_ptr),
        col_(col),
        part_(part),
        pes_(pes),
        ghosts_(static_cast<std::int64_t>(part.size()), pes) {
    cost_.rows.resize(at(pes));
    cost_.nnz.resize(at(pes));
    cost_.boundary_rows.resize(at(pes));
    cost_.traffic.resize(at(pes) * at(pes));
    if (std::ranges::is_sorted(part)) {
      cuts_.resize(at(pes) + 1);
      for (int pe = 0; pe <= pes; ++pe)
        cuts_[at(pe)] =
            static_cast<std::int32_t>(std::ranges::lower_bound(part, pe) - part.begin());
    }
  }

  PartitionCost count() {
    for (int first = 0; first < pes_; first += ghosts_.at_once()) {
      const int last = std::min(pes_, first + ghosts_.at_once());
      if (first > 0) ghosts_.clear();
      for_chunks(row_ptr_, [&](RowRange rows) { look_at(rows, first, last); });
      in_parallel(last - first, [&](int k) { sum_up(first + k, first); });
    }
    return std::move(cost_);
  }

 private:
  void look_at(RowRange rows, int first, int last) {
    Counts own(at(pes_)), nnz(at(pes_)), boundary(at(pes_));
    std::int64_t cut = 0;
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      const std::int32_t pe = part_[at(row)];
      if (pe < first || pe >= last) continue;
      ++own[at(pe)];
      nnz[at(pe)] += row_ptr_[at(row) + 1] - row_ptr_[at(row)];
      if (const std::int64_t outside = look_at_row(row, pe, first); outside > 0) {
        ++boundary[at(pe)];
        cut += outside;
      }
    }
    const std::scoped_lock lock(adding_);
    add(cost_.rows, own);
    add(cost_.nnz, nnz);
    add(cost_.boundary_rows, boundary);
    cost_.cut += cut;
  }

  // Entries of the row whose column another PE owns. Where parts are runs of rows, the outermost
  // columns tell that there are none.
  std::int64_t look_at_row(std::int32_t row, std::int32_t pe, int first) {
    const auto columns =
        col_.subspan(at(row_ptr_[at(row)]), at(row_ptr_[at(row) + 1] - row_ptr_[at(row)]));
    if (!cuts_.empty() && (columns.empty() || (columns.front() >= cuts_[at(pe)] &&
                                               columns.back() < cuts_[at(pe) + 1])))
      return 0;
    std::int64_t outside = 0;
    for (const std::int32_t column : columns)
      if (part_[at(column)] != pe) {
        ++outside;
        ghosts_.set(pe - first, column);
      }
    return outside;
  }

  void sum_up(int reader, int first) {
    std::int64_t* const from = cost_.traffic.data() + at(reader) * at(pes_);
    ghosts_.for_each(reader - first, 0, ghosts_.words(),
                     [&](std::size_t row) { ++from[part_[row]]; });
  }

  std::span<const std::int64_t> row_ptr_;
  std::span<const std::int32_t> col_, part_;
  int pes_;
  Ghosts ghosts_;
  std::vector<std::int32_t> cuts_;  // where each PE's rows begin; empty: they are no runs
  std::mutex adding_;
  PartitionCost cost_;
};

}  // namespace

PartitionCost cost_of(std::span<const std::int64_t> row_ptr, std::span<const std::int32_t> col,
                      std::span<const std::int32_t> part, int pes) {
  return Counter(row_ptr, col, part, pes).count();
}

double slice_padding(std::span<const std::int64_t> row_ptr, std::int64_t slice, std::int64_t most) {
  constexpr std::int64_t kRowsOfTask = 1 << 18;
  const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  const std::int64_t task = (kRowsOfTask + slice - 1) / slice * slice;
  std::atomic<std::int64_t> held = 0, stored = 0;
  in_parallel(static_cast<int>((rows + task - 1) / task), [&](int k) {
    const std::int64_t last = std::min(rows, (k + 1) * task);
    std::int64_t width_sum = 0, sum = 0;
    for (std::int64_t first = k * task; first < last; first += slice) {
      std::int64_t width = 0;
      for (std::int64_t row = first; row < std::min(last, first + slice); ++row) {
        const std::int64_t length = std::min(row_ptr[at(row) + 1] - row_ptr[at(row)], most);
        width = std::max(width, length);
        sum += length;
      }
      width_sum += width;
    }
    held += slice * width_sum;
    stored += sum;
  });
  return stored == 0 ? 1.0 : static_cast<double>(held) / static_cast<double>(stored);
}

}  // namespace cpufree
