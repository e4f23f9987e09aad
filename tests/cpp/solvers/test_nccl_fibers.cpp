// The engine nccl as a whole, without a GPU: what differs from nvshmem (test_nvshmem_fibers.cpp) is
// the library.
#include <cmath>
#include <cstdlib>

#include "cpufree/engines/remote/nccl/library.hpp"
#include "cpufree/probes/gpu/litmus.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "process_team.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

SystemSpec spec_for(int pes, std::shared_ptr<Team> team) {
  SystemSpec spec;
  spec.engine = team ? Engine::nccl : Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = 2;
  spec.threads = 32;
  if (team) spec.gpus = {team->rank()};
  spec.team = std::move(team);
  spec.remote_library = CPUFREE_TEST_REMOTE;
  spec.remote_kernels = "kernels of the host";
  return spec;
}

Solution<double> solved(const Matrix<double>& a, const SystemSpec& spec, int nodes) {
  SolveSpec how;
  how.method = Method::prcg;
  how.preconditioner = Preconditioner::jacobi;
  how.rtol = 1e-9;
  how.maxiter = 500;
  const auto part = random_partition(a.n(), spec.pes, 2);
  const auto system = make_system<double>(a.view(), part, {}, spec);
  if (system->plan().nodes != nodes) throw std::runtime_error("other nodes");
  auto result = system->solve(wave(a.n()), {}, how, {});
  if (result.outcome.reason != Reason::converged_rtol) throw std::runtime_error("not converged");
  return result;
}

// What ranks say who solve with `variable` in the environment, in nodes of `size` (0: as the
// library says, 4: one); "" where rank 0 has what one process finds, to the bit in one node.
std::vector<std::string> ranks_say(const char* variable, const char* value, int size) {
  const auto a = irregular(120, 5);
  return run_processes(4, [&](const std::shared_ptr<Team>& team) {
    setenv(variable, value, 1);
    SystemSpec spec = spec_for(4, team);
    spec.node_size = size == 4 ? 0 : size;
    spec.several_machines = size == 0;
    const auto found = solved(a, spec, size == 4 ? 1 : 2);
    if (team->rank() != 0) return;
    const auto one = solved(a, spec_for(4, nullptr), 1);
    for (std::size_t i = 0; i < one.x.size(); ++i)
      if (std::abs(found.x[i] - one.x[i]) > (size == 4 ? 0.0 : 1e-6))
        throw std::runtime_error("another solution");
  });
}

void expect_in_all(const std::vector<std::string>& said, const std::string& words) {
  for (const std::string& one : said) CHECK(one.find(words) != std::string::npos);
}

}  // namespace

TEST(processes_give_bitwise_what_one_process_gives_by_releases_with_and_without_pointers) {
  for (const char* version : {"22809", "23203"})
    for (const std::string& words : ranks_say("CPUFREE_TEST_NCCL", version, 4))
      CHECK_EQ(words, std::string());
}

TEST(nodes_that_are_imitated_and_those_that_the_library_says_find_the_solution) {
  for (const int size : {2, 0})
    for (const std::string& words : ranks_say("CPUFREE_TEST_FAR", size == 0 ? "2" : "4", size))
      CHECK_EQ(words, std::string());
}

TEST(the_litmus_test_sends_between_all_nodes_and_finds_nothing_wrong) {
  for (const int size : {2, 4}) {
    const auto said = run_processes(4, [&](const std::shared_ptr<Team>& team) {
      const Litmus found = run_litmus(
          {team, {"nccl", CPUFREE_TEST_REMOTE}, "kernels of the host", team->rank(), size});
      // Nodes of two: each PE sends to that at its place in the other one.
      const bool right = size == 2 ? found.nodes == 2 && found.messages == 4 * 3200
                                   : found.nodes == 1 && found.messages == 0;
      if (!right || found.wrong != 0) throw std::runtime_error("other messages");
    });
    for (const std::string& words : said) CHECK_EQ(words, std::string());
  }
}

TEST(what_the_library_cannot_do_is_told_with_the_reason) {
  expect_in_all(ranks_say("CPUFREE_TEST_NO_WINDOWS", "1", 4), "makes no symmetric windows here");
  expect_in_all(ranks_say("CPUFREE_TEST_BROKEN", "1", 4),
                "ncclCommInitRank failed (told by the test)");
  expect_in_all(ranks_say("CPUFREE_TEST_NCCL", "23002", 2),
                "made with NCCL 2.32.3, and its library here is 2.30.2");
  CHECK_THROWS(Unsupported, nccl::load("no_such_library.so"));
}

TEST(kernels_run_with_later_releases_but_over_a_network_with_their_own_alone) {
  CHECK_EQ(nccl::mismatch(22809, 22809, true), std::string());
  CHECK_EQ(nccl::mismatch(23002, 23203, false), std::string());
  CHECK(!nccl::mismatch(23002, 23203, true).empty());
  CHECK(!nccl::mismatch(22807, 22809, false).empty());
  CHECK(!nccl::mismatch(23203, 23002, false).empty());
}
