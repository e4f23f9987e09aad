// Set-ups and solves on a GPU that stops answering end, with the step, the GPU and what to do.
#include <string>

#include "cpufree/gpu/deadline.hpp"
#include "gpu_multigrid.hpp"

using namespace testing_multigrid;

TEST(a_solve_whose_vectors_do_not_arrive_ends) {
  const auto a = grid2d(40, 30);
  auto where = spec_for(1);
  where.factors.kind = Preconditioner::none;
  SolveSpec how = solve_spec();
  how.preconditioner = Preconditioner::none;
  const auto system = make_system<double>(a.view(), {}, {}, where);
  gpu::setup_limit = 0.05;
  host_gpu::stop_device(0, 2);  // behind the copy of b: pinned pieces of all solves stay usable
  std::string said;
  try {
    static_cast<void>(system->solve(wave<double>(a.n()), {}, how, {}));
  } catch (const gpu::Stuck& error) {
    said = error.what();
  }
  CHECK(said.find("for the vectors of a solve on GPU 0") != std::string::npos);
  static_cast<void>(gpuDeviceSynchronize());
  gpu::abandoned = false;
  gpu::setup_limit = gpu::kCopyLimit;
  host_gpu::configure({});
}

TEST(a_set_up_on_a_gpu_that_stops_names_the_step_that_has_not_ended) {
  const auto a = grid2d(40, 30);
  gpu::setup_limit = 0.05;
  int named = 0, done = 0;
  for (const Preconditioner kind : {Preconditioner::amg, Preconditioner::fsai})
    for (std::size_t after = 1; after < 400; after = after * 3 / 2 + 1) {
      auto where = spec_for(1);
      where.factors.kind = kind;
      where.layout = 1;
      host_gpu::configure({});
      host_gpu::stop_device(0, after);
      try {
        make_system<double>(a.view(), {}, {}, where);
        ++done;
      } catch (const gpu::Stuck& error) {
        const std::string said = error.what();
        if (said.find("look at the GPU (nvidia-smi") != std::string::npos) ++named;
        CHECK(said.find("waited longer than 0.05") != std::string::npos);
        CHECK(said.find("does not answer") != std::string::npos);
      }
      static_cast<void>(gpuDeviceSynchronize());  // forgets what the stopped one has queued
      gpu::abandoned = false;
    }
  CHECK(named > 8);
  gpu::setup_limit = gpu::kCopyLimit;
  host_gpu::configure({});
}
