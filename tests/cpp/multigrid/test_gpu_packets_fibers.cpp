// Multigrid by the engine for GPUs: packets that are lost, and matrices that lie on a GPU.
#include "cpufree/solvers/gpu/make_system.hpp"
#include "gpu_multigrid.hpp"
#include "host_ports.hpp"

using namespace testing_multigrid;

// All levels have packets. What a thread sends is lost once: a row of a level, or a sum.
TEST(a_lost_packet_ends_the_solve_and_is_named_by_who_waited_for_it) {
  const auto a = grid2d(25, 22);
  auto how = solve_spec(0.0);
  how.maxiter = 1;
  const auto expected = solve(a, spec_for(1), how, 2).x;
  constexpr std::int64_t kSteps = 3'000'000;  // those who wait look again forever
  int named = 0, unharmed = 0;
  for (const int thread : {0, 37})
    for (std::int64_t at = 1; at < 16; at += 7) {
      host_engine::mishap = {{cpu_fibers::Fault::Kind::drop_signal, 0, thread, at}, kSteps};
      std::vector<double> x;
      try {
        x = solve(a, spec_for(1), how).x;
      } catch (const EngineError&) {
      }
      int waited = 0;
      for (const WaitRecord& record : host_engine::mishap.records) {
        if (record.state != BlockState::expired) continue;
        ++waited;
        CHECK(record.seen < record.want);
        if (record.channel == Channel::local_arrival && record.from_block == thread / 32) ++named;
      }
      if (waited == 0) CHECK(x == expected), ++unharmed;
    }
  host_engine::mishap = {};
  CHECK(named > 0);
  CHECK(unharmed < 6);
}

TEST(a_matrix_on_a_gpu_gets_the_levels_of_one_on_the_host) {
  auto where = spec_for(1);
  where.layout = 1;
  for (const auto& a : {grid2d(70, 60), irregular(900, 6)}) {
    const gpu::DeviceArray<std::int64_t> ptr(0, a.row_ptr);
    const gpu::DeviceArray<std::int32_t> col(0, a.col);
    const gpu::DeviceArray<double> val(0, a.val);
    const GivenCsr<double> given{a.n(), ptr.data(), true, col.data(), val.data(), 0};
    const auto made = make_cuda_system(given, where);
    CHECK_EQ(made->plan().refused, std::string());
    const auto b = wave(a.n());
    CHECK(made->solve(b, {}, solve_spec(), {}).x == solve(a, where, solve_spec()).x);
    CHECK(made->update(a.view()));
    CHECK(made->solve(b, {}, solve_spec(), {}).x == solve(a, where, solve_spec()).x);
  }
}
