// A process of the baseline `mpi` that fails where the others wait for it ends all of them, with
// its reason: the others are in MPI. In a program of its own, and one test in each run: none
// returns.
#include <memory>

#include "cpufree/baselines/drivers/mpi.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

const auto kMatrix = grid2d(9, 9);
const auto kB = wave(kMatrix.n());

bool is_last() { return mpi_place().rank == mpi_place().size - 1; }

// The last process waits for its GPU less long than the others for it.
std::unique_ptr<Baseline<double>> make_mpi() {
  const int rank = mpi_place().rank, size = mpi_place().size;
  host_gpu::configure({4, true, true, static_cast<unsigned>(rank) + 1, false});
  BaselineSpec spec;
  spec.kind = "mpi";
  spec.pes = size;
  spec.spmv = "warp_slices";
  spec.wait_limit = is_last() ? 3.0 : 300.0;
  return make_baseline<double>(kMatrix.view(), random_partition(kMatrix.n(), size, 3), {}, spec);
}

// Returns how much ran.
std::size_t solve(Baseline<double>& baseline) {
  const std::size_t before = host_gpu::executed();
  BaselineSolve how;
  how.exact_iterations = 20;
  baseline.solve(kB, {}, how);
  return host_gpu::executed() - before;
}

}  // namespace

TEST(mpi_ends_all_processes_where_one_gpu_stops_in_a_solve) {
  const auto baseline = make_mpi();
  solve(*baseline);
  if (is_last()) host_gpu::stop_device(mpi_place().rank, 20);
  solve(*baseline);
  CHECK(false);  // it has come back
}

// Every first solve by a method tries how processes communicate: a sum that overlaps with other
// work at the end, and before that one which does not.
TEST(mpi_ends_all_processes_where_one_gpu_stops_before_the_first_solve) {
  std::size_t prepares = 0;
  {
    const auto baseline = make_mpi();
    prepares = solve(*baseline);
    prepares -= solve(*baseline);
  }
  const auto baseline = make_mpi();
  const std::size_t copies = 1;  // of b
  if (is_last()) host_gpu::stop_device(mpi_place().rank, copies + prepares - 2);
  solve(*baseline);
  CHECK(false);
}

TEST(mpi_ends_all_processes_where_one_gpu_fails) {
  const auto baseline = make_mpi();
  solve(*baseline);
  if (is_last()) host_gpu::break_device(mpi_place().rank, 20);
  solve(*baseline);
  CHECK(false);
}
