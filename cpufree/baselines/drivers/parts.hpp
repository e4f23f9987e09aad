// What the baselines of one process, and those of MPI, do alike around a solve.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/baselines/comm/comm.hpp"
#include "cpufree/baselines/drive.hpp"
#include "cpufree/baselines/drivers/solvers.hpp"
#include "cpufree/problem/blocks/length_windows.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree::baselines {

using RowsOfPes = std::vector<std::vector<std::int32_t>>;

template <class T>
HaloPlan<T> plan_for(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                     std::span<const std::int32_t> order, int pes) {
  require(matrix.n >= 1, "the matrix has no rows");
  HaloPlan<T> plan = plan_of(matrix, part, order, pes);
  sort_by_length(plan, AllHere(plan.local.size()));  // slices shrink; cuSPARSE hardly minds
  return plan;
}

template <class T>
RowsOfPes rows_of(const HaloPlan<T>& plan) {
  RowsOfPes rows;
  for (const LocalSystem<T>& local : plan.local) rows.push_back(local.global_row);
  return rows;
}

inline std::int32_t count_rows(const RowsOfPes& rows) {
  std::size_t count = 0;
  for (const auto& of_pe : rows) count += of_pe.size();
  return static_cast<std::int32_t>(count);
}

template <class T>
void check_sizes(std::span<const T> b, std::span<T> x, std::int32_t rows) {
  require(b.size() == at(rows), "b has " + std::to_string(b.size()) + " entries, but the matrix " +
                                    std::to_string(rows) + " rows");
  require(x.empty() || x.size() == at(rows), "x has " + std::to_string(x.size()) +
                                                 " entries, but the matrix " +
                                                 std::to_string(rows) + " rows");
}

template <class T>
void scatter(const std::vector<Rank<T>*>& ranks, const RowsOfPes& rows, std::span<const T> b) {
  for (const Rank<T>* rank : ranks) {
    std::vector<T> mine;
    for (const std::int32_t row : rows[at(rank->pe)]) mine.push_back(b[at(row)]);
    rank->b.upload(rank->compute, mine.data(), mine.size());
    rank->compute.drain(Deadline(kCopyLimit), "a copy to the GPU");
  }
}

template <class T>
void gather(const std::vector<Rank<T>*>& ranks, const RowsOfPes& rows, std::span<T> x) {
  if (x.empty()) return;
  for (const Rank<T>* rank : ranks) {
    std::vector<T> mine(rows[at(rank->pe)].size());
    rank->x.download(rank->compute, mine.data(), mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) x[at(rows[at(rank->pe)][i])] = mine[i];
  }
}

// Of one product; infinite where the rank cannot have it.
template <class T>
double seconds_of(Spmv spmv, Rank<T>& rank) {
  if (!rank.product.offers(spmv)) return HUGE_VAL;
  const SumTarget sums{rank.partial.data(), rank.arrived.data(), nullptr, rank.sums.data(), {}};
  return rank.product.measure(spmv, rank.vector(HaloVector::p), rank.s.data(), sums);
}

struct Directly {
  void operator()(auto&& work) const { work(); }
};

// Finds the product that is fastest on the slowest PE, or takes the one that is named. `apart` does
// what each process does by itself. Where they meet in `slowest`, it must throw on all of them what
// is thrown on one, which would not come to that meeting.
template <class T, class F = Directly>
void choose_spmv(const std::vector<Rank<T>*>& ranks, Comm<T>& comm, const std::string& name,
                 BaselineFacts& facts, const F& apart = {}) {
  std::size_t best = 0;
  double least = HUGE_VAL;
  for (std::size_t k = 0; k < kSpmvNames.size(); ++k) {
    if (name != "auto" && name != kSpmvNames[k]) continue;
    const Spmv spmv = static_cast<Spmv>(k);
    double slowest = 0.0;
    apart([&] {
      for (Rank<T>* rank : ranks) slowest = std::max(slowest, seconds_of(spmv, *rank));
    });
    slowest = comm.slowest(slowest);
    if (slowest < HUGE_VAL) facts.spmv_seconds.emplace_back(kSpmvNames[k], slowest);
    if (slowest < least) {
      best = k;
      least = slowest;
    }
  }
  if (!(least < HUGE_VAL))
    throw Unsupported("spmv " + name +
                      ": the vendor's product takes fewer than 2^31 nonzeros on each PE; use "
                      "warp_slices, or more PEs");
  apart([&] {
    for (Rank<T>* rank : ranks)
      rank->product.choose(static_cast<Spmv>(best), rank->vector(HaloVector::p), rank->s.data());
  });
  facts.spmv = kSpmvNames[best];
}

inline const char* reason_of(const Ending& ending, bool exact) {
  switch (ending.code) {
    case Code::converged:
      if (exact) return "CONVERGED_ITS";
      return ending.iterations == 0 && ending.square == 0.0 ? "CONVERGED_ATOL" : "CONVERGED_RTOL";
    case Code::grown:
      return "DIVERGED_DTOL";
    case Code::not_finite:
      return "DIVERGED_NANORINF";
    case Code::indefinite_mat:
      return "DIVERGED_INDEFINITE_MAT";
    case Code::indefinite_pc:
      return "DIVERGED_INDEFINITE_PC";
    case Code::broken_down:
      return "DIVERGED_BREAKDOWN";
    default:
      return exact ? "CONVERGED_ITS" : "DIVERGED_ITS";
  }
}

inline BaselineResult report(const Ending& ending, bool exact, Variant variant, const Stop& stop,
                             BaselineResult result) {
  const bool full = variant == Variant::full;
  result.iterations = static_cast<std::int64_t>(exact ? stop.iterations : ending.iterations);
  result.reason = full ? reason_of(ending, exact) : "CONVERGED_ITS";
  result.residual = full ? std::sqrt(ending.square) : 0.0;
  return result;
}

}  // namespace cpufree::baselines
