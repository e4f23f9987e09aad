// Studies of the solver kernels with blocks of two warps, as on GPUs: every thread is a fiber.
#include <cmath>
#include <numeric>

#include "harness.hpp"
#include "kernel_rig.hpp"
#include "studies.hpp"
#include "warp_rig.hpp"

using namespace testing_rig;
using namespace testing_matrices;

namespace {

using studies::alike;

constexpr int kThreads = 64;
constexpr int kBlocks = 2;
constexpr std::int64_t kIterations = 5;

SolveParams params() {
  SolveParams p;
  p.rtol = 0.0;
  p.maxiter = kIterations;
  p.replace_every = 3;
  p.roundoff = 1e-16;
  p.history_capacity = kIterations + 2;
  return p;
}

// Runs a study on `pes` PEs. True if no wait was given up.
template <Study S, template <class, class> class Algorithm>
bool run(Rig& rig, int pes, std::uint64_t seed) {
  rig.reset();
  return warp_rig::run(pes, kBlocks, kThreads, 16, rig.heaps(), seed,
                       [&](warp_rig::Port& port, int pe) {
                         if constexpr (S == Study::none)
                           solve_kernel<Algorithm, Identity<double>>(port, rig.args(pe));
                         else
                           study_kernel<S, Algorithm, Identity<double>>(port, rig.args(pe));
                       });
}

template <template <class, class> class Algorithm>
void check(Rig& rig, int pes) {
  CHECK((run<Study::none, Algorithm>(rig, pes, 1)));
  const Outcome normal = rig.outcome;
  const auto x = rig.x();
  CHECK_EQ(normal.iterations, kIterations);
  const std::uint64_t seed = 2;
  CHECK((run<Study::split, Algorithm>(rig, pes, seed)));
  CHECK(alike(rig.x(), x));
  for (const Split& split : rig.splits)  // in steps of the machine: products take none
    for (const Phase phase : {Phase::vector, Phase::reduction_wait})
      CHECK(split.seconds[static_cast<int>(phase)] > 0.0);
  CHECK((run<Study::no_comm, Algorithm>(rig, pes, seed)));
  CHECK_EQ(rig.outcome.iterations, kIterations);
  if (pes == 1) CHECK(alike(rig.x(), x));
  CHECK((run<Study::no_compute, Algorithm>(rig, pes, seed)));
  CHECK_EQ(rig.outcome.iterations, kIterations);
  CHECK_EQ(rig.outcome.exchanges, normal.exchanges);
  CHECK_EQ(rig.outcome.reductions, normal.reductions);
}

void check_all(Style style) {
  const auto a = grid2d(19, 13);
  for (const int pes : {1, 2}) {
    Rig rig(a, wave(a.n()), pes, kBlocks, 5, style);
    rig.params = params();
    check<ConjugateGradient>(rig, pes);
    check<PredictRecompute>(rig, pes);
    check<PipelinedCg>(rig, pes);
  }
}

}  // namespace

TEST(studies_of_blocks_of_warps_with_flags) { check_all(Style::cpu); }
TEST(studies_of_blocks_of_warps_with_packets) { check_all(Style::gpu); }
TEST(studies_of_blocks_of_warps_with_packets_among_blocks) { check_all(Style::gpu_blocks); }
