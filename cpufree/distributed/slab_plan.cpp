#include "cpufree/distributed/slab_plan.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/distributed/team_peers.hpp"
#include "cpufree/problem/halo_build.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

// An entry between two ranks, by its row and its column, each counted from the first row of the
// rank that owns it.
struct Crossing {
  std::int32_t row = 0;
  std::int32_t col = 0;
  friend auto operator<=>(const Crossing&, const Crossing&) = default;
  Crossing mirrored() const { return {col, row}; }
};

// A value that differs from that of its mirror image: the place among the entries between the two
// ranks, in the order of the receiver.
struct Differing {
  std::int64_t place = 0;
  double value = 0.0;
  double size = 0.0;  // of the sender's row
};

template <class V>
using ByRank = std::vector<std::vector<V>>;

template <class V>
ByRank<V> exchange_all(Team& team, const char* what, ByRank<V> mine) {
  std::vector<ByRank<V>> here;
  here.push_back(std::move(mine));
  return std::move(exchange_lists(TeamPeers(team), what, here).at(0));
}

template <class T>
class SlabPlanner {
 public:
  SlabPlanner(const RowSlab<T>& slab, Team& team, const EntryRule& rule)
      : slab_(slab), team_(team), rule_(rule), bounds_(gather_bounds(slab, team)) {}

  SlabPlan<T> make() {
    const auto remote = find_boundary(slab_);
    const bool checks = rule_.tolerance >= 0.0;
    double asymmetry = checks ? check_own_entries(slab_, rule_) : 0.0;
    collect_crossings(remote);
    compare_pattern();
    if (checks && rule_.wanted != Wanted::finite) {
      asymmetry = std::max(asymmetry, compare_values());
      asymmetry = most(team_, "asymmetry", asymmetry);
    }
    number_rows(remote);
    number_ghosts();
    list_destinations();
    copy_rows();
    count_sent(local_);
    SlabPlan<T> result{slab_.first, slab_.all_rows, {}, asymmetry};
    result.plan.local.push_back(std::move(local_));
    return result;
  }

 private:
  std::int32_t rows() const { return static_cast<std::int32_t>(slab_.rows()); }
  int owner_of(std::int64_t column) const {
    const auto after = std::ranges::upper_bound(bounds_, column);
    return static_cast<int>(after - bounds_.begin()) - 1;
  }
  std::string name(int rank, Crossing entry, int other) const {
    return "entry (row " + std::to_string(bounds_[at(rank)] + entry.row) + ", column " +
           std::to_string(bounds_[at(other)] + entry.col) + ") of rank " + std::to_string(rank);
  }

  // Entries with columns of other ranks, by rank, in the order of rows; values go with them.
  void collect_crossings(const std::vector<char>& remote) {
    crossings_.resize(at(team_.size()));
    values_.resize(at(team_.size()));
    for (std::size_t row = 0; row < remote.size(); ++row) {
      if (remote[row] == 0) continue;
      for (std::int64_t k = slab_.row_ptr[row]; k < slab_.row_ptr[row + 1]; ++k) {
        const std::int64_t column = slab_.col[at(k)];
        if (column >= slab_.first && column < slab_.end()) continue;
        const std::size_t owner = at(owner_of(column));
        crossings_[owner].push_back(
            {static_cast<std::int32_t>(row), static_cast<std::int32_t>(column - bounds_[owner])});
        values_[owner].push_back(slab_.val[at(k)]);
      }
    }
  }

  // Every entry between two ranks must have its mirror image in the other one: the proofs of the
  // channels rest on it. As both list theirs, in the order of the one who reads the list, the lists
  // are the same.
  void compare_pattern() {
    order_.resize(crossings_.size());
    ByRank<Crossing> sent(crossings_.size());
    for (std::size_t k = 0; k < sent.size(); ++k) {
      order_[k].resize(crossings_[k].size());
      std::iota(order_[k].begin(), order_[k].end(), std::int64_t{0});
      std::ranges::sort(order_[k], {},
                        [&](std::int64_t e) { return crossings_[k][at(e)].mirrored(); });
      for (const std::int64_t e : order_[k]) sent[k].push_back(crossings_[k][at(e)].mirrored());
    }
    const auto theirs = exchange_all(team_, "entries between ranks", std::move(sent));
    // Both find that their lists differ; the lower one tells, and the verdict ends the next call of
    // the other, which until then works with its own lists alone.
    for (std::size_t k = at(team_.rank()) + 1; k < theirs.size(); ++k)
      if (theirs[k] != crossings_[k]) refuse_one_way(static_cast<int>(k), theirs[k]);
  }

  [[noreturn]] void refuse_one_way(int other, const std::vector<Crossing>& theirs) const {
    const auto& mine = crossings_[at(other)];
    const auto [a, b] = std::ranges::mismatch(mine, theirs);
    // The smaller one of the first two that differ is missing in the other list.
    const bool here = a != mine.end() && (b == theirs.end() || *a < *b);
    const int has = here ? team_.rank() : other;
    const int lacks = here ? other : team_.rank();
    const Crossing entry = here ? *a : b->mirrored();
    throw BadEntry(
        BadEntry::Kind::not_symmetric, bounds_[at(has)] + entry.row, bounds_[at(lacks)] + entry.col,
        "the pattern of the matrix is not symmetric: " + name(has, entry, lacks) + " has no " +
            name(lacks, entry.mirrored(), has) + "; store it there, were it 0");
  }

  // Values between ranks against those of their mirror images. Returns the largest asymmetry.
  double compare_values() {
    ByRank<T> sent(values_.size());
    for (std::size_t k = 0; k < sent.size(); ++k)
      for (const std::int64_t e : order_[k]) sent[k].push_back(values_[k][at(e)]);
    const auto theirs = exchange_all(team_, "values between ranks", std::move(sent));
    ByRank<Differing> differing(theirs.size());
    for (std::size_t k = 0; k < theirs.size(); ++k)
      for (std::size_t e = 0; e < theirs[k].size(); ++e)
        if (theirs[k][e] != values_[k][e])
          differing[k].push_back({static_cast<std::int64_t>(e), static_cast<double>(values_[k][e]),
                                  size_of_row(slab_, crossings_[k][e].row, rule_.wanted)});
    double worst = 0.0;
    const auto shared = exchange_all(team_, "values that differ", std::move(differing));
    for (std::size_t k = 0; k < shared.size(); ++k)
      for (const Differing& d : shared[k]) {
        const std::size_t e = at(order_[k][at(d.place)]);
        const Crossing entry = crossings_[k][e];
        worst = std::max(worst, asymmetry_of({slab_.first + entry.row, bounds_[k] + entry.col,
                                              static_cast<double>(values_[k][e]), d.value,
                                              size_of_row(slab_, entry.row, rule_.wanted), d.size},
                                             rule_));
      }
    return worst;
  }

  // Interior rows first, then boundary rows, each in their order.
  void number_rows(const std::vector<char>& remote) {
    local_.interior = static_cast<std::int32_t>(std::ranges::count(remote, 0));
    local_.global_row.resize(remote.size());
    place_.resize(remote.size());
    std::int32_t interior = 0, boundary = local_.interior;
    for (std::int32_t row = 0; row < rows(); ++row) {
      place_[at(row)] = remote[at(row)] == 0 ? interior++ : boundary++;
      local_.global_row[at(place_[at(row)])] = row;
    }
    local_.row_ptr.assign(remote.size() + 1, 0);
    for (std::size_t i = 0; i < remote.size(); ++i) {
      const std::size_t row = at(local_.global_row[i]);
      local_.row_ptr[i + 1] = local_.row_ptr[i] + slab_.row_ptr[row + 1] - slab_.row_ptr[row];
    }
  }

  // Ghosts in the order of their numbers in the matrix: as all of them are boundary rows of their
  // owner, that is the order of its local rows, too.
  void number_ghosts() {
    // To each rank: where its rows begin among my ghosts, and which rows of mine it reads.
    ByRank<std::int32_t> shared(crossings_.size());
    for (std::size_t k = 0; k < shared.size(); ++k) {
      shared[k].push_back(static_cast<std::int32_t>(ghosts_.size()));
      for (const std::int64_t e : order_[k]) {
        const std::int64_t column = bounds_[k] + crossings_[k][at(e)].col;
        if (ghosts_.empty() || ghosts_.back() != column) ghosts_.push_back(column);
      }
      require(slab_.rows() + static_cast<std::int64_t>(ghosts_.size()) <=
                  std::numeric_limits<std::int32_t>::max(),
              "a rank can hold at most 2^31 - 1 rows and ghosts; use more ranks");
      each_row_read_by(k, [&](std::int32_t row) { shared[k].push_back(place_[at(row)]); });
    }
    const auto received = exchange_all(team_, "rows of the ghosts", std::move(shared));
    std::vector<RowOfPe> list;
    for (std::size_t k = 0; k < received.size(); ++k) {
      const auto pe = static_cast<std::int32_t>(k);
      first_there_.push_back(static_cast<std::int32_t>(bounds_[k + 1] - bounds_[k]) +
                             received[k].at(0));
      for (std::size_t g = 1; g < received[k].size(); ++g) list.push_back({pe, received[k][g]});
    }
    list_ghosts(local_, list);
  }

  // Calls f for the rows here that a rank reads, in their order.
  template <class F>
  void each_row_read_by(std::size_t rank, F&& f) const {
    std::int32_t before = -1;
    for (const Crossing entry : crossings_[rank])
      if (std::exchange(before, entry.row) != entry.row) f(entry.row);
  }

  void list_destinations() {
    set_destinations(local_, [&](auto&& add) {
      for (std::size_t k = 0; k < crossings_.size(); ++k) {
        std::int32_t next = first_there_[k];
        each_row_read_by(k, [&](std::int32_t row) {
          add(place_[at(row)], Destination{static_cast<std::int32_t>(k), next++});
        });
      }
    });
  }

  // The rows in local numbering, on all cores.
  void copy_rows() {
    local_.col.resize(at(local_.row_ptr.back()));
    local_.val.resize(at(local_.row_ptr.back()));
    for_chunks(local_.row_ptr, [&](RowRange chunk) {
      RowWriter<T> writer(local_);
      for (std::int32_t i = chunk.begin; i < chunk.end; ++i) {
        const std::int64_t from = slab_.row_ptr[at(local_.global_row[at(i)])];
        writer.write(i, slab_.col.data() + from, slab_.val.data() + from, [&](std::int64_t column) {
          if (column >= slab_.first && column < slab_.end())
            return place_[at(column - slab_.first)];
          const auto ghost = std::ranges::lower_bound(ghosts_, column);
          return rows() + static_cast<std::int32_t>(ghost - ghosts_.begin());
        });
      }
    });
  }

  const RowSlab<T>& slab_;
  Team& team_;
  EntryRule rule_;
  std::vector<std::int64_t> bounds_;  // first row of each rank, then the number of all
  ByRank<Crossing> crossings_;
  ByRank<T> values_;
  ByRank<std::int64_t> order_;             // of the crossings as the other rank sees them
  std::vector<std::int32_t> place_;        // local number of each row
  std::vector<std::int64_t> ghosts_;       // their numbers in the matrix
  std::vector<std::int32_t> first_there_;  // by rank: where its columns of my rows begin
  LocalSystem<T> local_;
};

}  // namespace

template <class T>
SlabPlan<T> plan_slab(const RowSlab<T>& slab, Team& team, const EntryRule& rule) {
  return SlabPlanner<T>(slab, team, rule).make();
}

template SlabPlan<float> plan_slab(const RowSlab<float>&, Team&, const EntryRule&);
template SlabPlan<double> plan_slab(const RowSlab<double>&, Team&, const EntryRule&);

}  // namespace cpufree
