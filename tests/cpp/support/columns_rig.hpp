// The kernel for several right-hand sides on the testing engine, on the layout of a Rig.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "cpufree/solvers/host/heap.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "harness.hpp"
#include "kernel_rig.hpp"
#include "warp_rig.hpp"

namespace testing_rig {

template <int K>
class ColumnsRig {
 public:
  using Args = SolveArgs<Format, K>;
  using Values = Columns<double, K>;

  ColumnsRig(const testing_matrices::Matrix<double>& a,
             const std::vector<std::vector<double>>& columns, int pes, int blocks, unsigned seed,
             Style style)
      : columns_(columns), single_(a, columns[0], pes, blocks, seed, style), blocks_(blocks) {
    const std::size_t n = columns[0].size();
    Extent extent;
    extent.rows_and_ghosts = (at(blocks) + 1) * n + at(blocks);  // what blocks own and read
    const bool packets = single_.args(0).block_halos;
    heap_ = Heap<double>(pes, blocks, extent, packets ? 2 * n : 0, 1, false, K);
    heaps_ = std::make_unique<cpu_threads::SymmetricHeaps>(pes, heap_.bytes);
    for (int pe = 0; pe < pes; ++pe) first_ghost_.push_back(single_.args(pe).rows);
    vectors_.assign(at(pes), std::vector<std::vector<Values>>(6, std::vector<Values>(n)));
  }

  SolveParams params;
  Outcome outcomes[K];

  // That each of a number of schedules, seeds from `first`, ends, with these x and outcomes.
  template <bool kJacobi, template <class, class> class Algorithm = ConjugateGradient>
  void check_schedules(int first, int schedules, const std::vector<std::vector<double>>& expected,
                       const std::vector<Outcome>& ends) {
    int stuck = 0, wrong = 0;
    for (int seed = first; seed <= harness::schedules(schedules); ++seed) {
      if (!run<kJacobi, Algorithm>(static_cast<std::uint64_t>(seed))) ++stuck;
      for (int k = 0; k < K; ++k) {
        const Outcome &mine = outcomes[k], &other = ends[at(k)];
        const bool same = x(k) == expected[at(k)] && mine.reason == other.reason &&
                          mine.iterations == other.iterations && mine.residual == other.residual &&
                          mine.true_residual == other.true_residual &&
                          mine.replacements == other.replacements &&
                          mine.history_count == other.history_count;
        if (!same) ++wrong;
      }
    }
    CHECK_EQ(stuck, 0);
    CHECK_EQ(wrong, 0);
  }

  // Runs the kernel under one schedule. True if no wait was given up.
  template <bool kJacobi, template <class, class> class Algorithm = ConjugateGradient>
  bool run(std::uint64_t seed, const cpu_fibers::Fault& fault = {}) {
    return run_with<std::conditional_t<kJacobi, Jacobi<double>, Identity<double>>, Algorithm>(
        seed, fault);
  }
  template <class M, template <class, class> class Algorithm>
  bool run_with(std::uint64_t seed, const cpu_fibers::Fault& fault = {}) {
    history_.assign(K * at(params.history_capacity), 0.0);
    std::vector<Args> args;
    for (int pe = 0; pe < single_.pes(); ++pe) {
      std::memset(heaps_->base(pe), 0, heaps_->bytes());
      args.push_back(arguments(pe));
    }
    machine_ = std::make_unique<cpu_fibers::Machine>(
        cpu_fibers::Config{single_.pes(), blocks_, heaps_->bases(), seed, fault},
        [&](int pe, int block) {
          cpu_fibers::Port port(*machine_, pe, block);
          solve_kernel<Algorithm, M>(port, args[at(pe)]);
        });
    return machine_->run();
  }
  // The same by blocks of several threads, as on GPUs.
  template <class M, template <class, class> class Algorithm>
  bool run_threads(int threads, unsigned seed) {
    history_.assign(K * at(params.history_capacity), 0.0);
    std::vector<Args> args;
    for (int pe = 0; pe < single_.pes(); ++pe) {
      std::memset(heaps_->base(pe), 0, heaps_->bytes());
      args.push_back(arguments(pe));
    }
    return warp_rig::run<warp_rig::LanesPort>(
        single_.pes(), blocks_, threads, 0, heaps_->bases(), seed,
        [&](warp_rig::LanesPort& port, int pe) { solve_kernel<Algorithm, M>(port, args[at(pe)]); });
  }
  const cpu_fibers::Machine& machine() const { return *machine_; }

  std::vector<double> x(int k) const {
    std::vector<double> all(columns_[0].size());
    for (int pe = 0; pe < single_.pes(); ++pe)
      for (std::int32_t j = 0; j < single_.args(pe).rows; ++j)
        all[at(single_.args(pe).global_row[j])] = vectors_[at(pe)][0][at(j)][k];
    return all;
  }

 private:
  Args arguments(int pe) {
    const SolveArgs<Format>& plain = single_.args(pe);
    auto& v = vectors_[at(pe)];
    for (std::int32_t j = 0; j < plain.rows; ++j)
      for (int k = 0; k < K; ++k) v[3][at(j)][k] = columns_[at(k)][at(plain.global_row[j])];
    Args a;
    a.params = params;
    a.vectors.x = v[0].data(), a.vectors.r = v[1].data();
    a.vectors.s = v[2].data(), a.vectors.b = v[3].data();
    a.vectors.out = v[4].data(), a.vectors.rest = v[5].data();
    a.global_row = plain.global_row;
    a.vectors.inverse_diagonal = plain.vectors.inverse_diagonal;
    a.block_halos = plain.block_halos;
    heap_.place(a, heaps_->base(pe));
    a.shares = plain.shares;
    a.rows = plain.rows;
    a.send_ptr = plain.send_ptr;
    a.destinations = plain.destinations;
    a.first_ghost = plain.halo[0] != nullptr ? first_ghost_.data() : nullptr;
    a.source = plain.source;
    a.outcome = outcomes;
    a.history = history_.data();
    return a;
  }

  std::vector<std::vector<double>> columns_;
  Rig single_;
  int blocks_;
  Heap<double> heap_;
  std::unique_ptr<cpu_threads::SymmetricHeaps> heaps_;
  std::vector<std::int32_t> first_ghost_;
  std::vector<std::vector<std::vector<Values>>> vectors_;  // of each PE: x, r, s, b, out, rest
  std::vector<double> history_;
  std::unique_ptr<cpu_fibers::Machine> machine_;
};

}  // namespace testing_rig
