// Kernels that wait inside of a library, where no bound of ours reaches, and how the host ends
// them. On the stand-in of a GPU's runtime (host_gpu).
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "cpufree/base/error.hpp"
#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "host_gpu/host_kernel.hpp"
#include "matrices.hpp"

using namespace cpufree;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kForever{800};  // for a test

// Its hub is not there: who gives it up is told so by the next look at it.
class LoneTeam final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Bytes> all_gather(const char*, std::span<const std::byte> mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  std::vector<Bytes> gather(const char* what, std::span<const std::byte> mine) override {
    return all_gather(what, mine);
  }
  std::vector<Bytes> exchange(const char*, const std::vector<Bytes>&) override { return {}; }
  void give_up(const std::string& message) override {
    said += message;
    ended = true;
  }
  std::string said;
  std::atomic<bool> ended{false};
};

// As a process does that follows its team (in_processes.following): it throws once that has ended.
Progress following(const LoneTeam& team) {
  return [&team](std::int64_t, double) {
    if (team.ended) throw EngineError("the team has ended");
    return true;
  };
}

// A kernel of two blocks. Block 0 waits in a library until the host says leave, which stands for
// the end of the process; block 1 gives up its wait for block 0 if `gives_up`.
host_engine::Kernel waits_in_library(bool gives_up, std::chrono::milliseconds longest) {
  return {sizeof(int), [=](const gpu_p2p::Shared& shared, const void*, int, int, std::size_t) {
            if (gives_up) {
              WaitRecord record;
              record.state = BlockState::expired;
              record.channel = Channel::node_reduction;
              record.from_pe = record.from_block = 0;
              shared.records[1] = record;
            }
            const auto end = Clock::now() + longest;
            while (*shared.host_leave == 0 && Clock::now() < end)
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }};
}

double run(const host_engine::Kernel& kernel, LoneTeam& team) {
  GpuRunner runner({0}, 2);
  const int nothing = 0;
  return runner.run({&kernel, 2, 32}, std::vector<gpu_p2p::Shared>(1), {&nothing}, Limits{},
                    following(team), &team);
}

}  // namespace

TEST(a_kernel_that_waits_in_a_library_after_waits_were_given_up_has_the_team_given_up) {
  LoneTeam team;
  CHECK_THROWS(EngineError, run(waits_in_library(true, kForever), team));
  CHECK(team.said.find("a wait for another rank was given up") != std::string::npos);
}

TEST(a_kernel_that_waits_while_no_wait_was_given_up_is_waited_for) {
  LoneTeam team;
  CHECK(run(waits_in_library(false, std::chrono::milliseconds(300)), team) >= 0.3);
  CHECK_EQ(team.said, std::string());
}

// Its solve has the GPUs: what a new system does to wake them must not wait for it.
TEST(a_progress_function_may_make_a_system_on_the_gpus_of_its_solve) {
  const auto a = testing_matrices::grid2d(30, 30);
  const auto b = testing_matrices::wave(a.n());
  SystemSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.blocks = 2;
  spec.threads = 32;
  SolveSpec how;
  how.rtol = 1e-9;
  how.maxiter = 1000;
  const auto system = make_system<double>(a.view(), {}, {}, spec);
  std::unique_ptr<System<double>> another;
  const auto found = system->solve(b, {}, how, [&](std::int64_t, double) {
    if (!another) another = make_system<double>(a.view(), {}, {}, spec);
    return true;
  });
  CHECK(another != nullptr);
  CHECK(another->solve(b, {}, how, {}).x == found.x);
}
