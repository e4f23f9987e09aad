// A GPU that does not answer ends all processes of the baseline `mpi`, with its reason: the others
// wait in MPI. In a program of its own, for it does not return.
#include "cpufree/run/baseline_mpi.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

TEST(mpi_ends_all_processes_where_one_gpu_stops) {
  const int rank = mpi_place().rank, size = mpi_place().size;
  host_gpu::configure({4, true, true, static_cast<unsigned>(rank) + 1, false});
  BaselineSpec spec;
  spec.kind = "mpi";
  spec.pes = size;
  spec.spmv = "warp_slices";
  spec.wait_limit = 2.0;
  const auto a = grid2d(9, 9);
  const auto b = wave(a.n());
  const auto baseline = make_baseline<double>(a.view(), random_partition(a.n(), size, 3), {}, spec);
  BaselineSolve how;
  how.exact_iterations = 20;
  baseline->solve(b, {}, how);
  if (rank == size - 1) host_gpu::stop_device(rank, 20);
  baseline->solve(b, {}, how);
  CHECK(false);  // it has come back
}
