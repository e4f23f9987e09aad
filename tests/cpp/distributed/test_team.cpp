// Systems of several processes: each member of a team has one PE. Here the members are threads, and
// the memory that they share is mapped by each for itself, as by processes.
#include "cpufree/distributed/team.hpp"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "cpufree/engines/cpu_processes/memory.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"
#include "thread_team.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

SystemSpec spec_for(int pes, int blocks, std::shared_ptr<Team> team) {
  SystemSpec spec;
  spec.engine = team ? Engine::cpu_processes : Engine::cpu_threads;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.team = std::move(team);
  return spec;
}

void rethrow(const std::vector<std::exception_ptr>& thrown) {
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

// Rank 0's solution must be bit for bit that of all PEs in one process.
template <class T>
void expect_same(const CsrView<T>& a, std::span<const std::int32_t> part, int pes, int blocks,
                 int halo, const SolveSpec& how) {
  const auto b = wave<T>(a.n);
  SystemSpec one = spec_for(pes, blocks, nullptr);
  one.halo = halo;
  const auto expected = make_system<T>(a, part, {}, one)->solve(b, {}, how, {});
  rethrow(run_team(pes, [&](const std::shared_ptr<Team>& team) {
    SystemSpec spec = spec_for(pes, blocks, team);
    spec.halo = halo;
    const auto system = make_system<T>(a, part, {}, spec);
    const auto found = system->solve(b, {}, how, {});
    CHECK_EQ(found.outcome.reason, expected.outcome.reason);
    CHECK_EQ(found.outcome.iterations, expected.outcome.iterations);
    CHECK(found.history == expected.history);
    CHECK_EQ(system->plan().matrix_bytes > 0.0, true);
    if (team->rank() == 0) CHECK(found.x == expected.x);
    if (team->rank() != 0)
      for (std::size_t i = 0; i < found.x.size(); ++i)
        CHECK(std::isnan(found.x[i]) || found.x[i] == expected.x[i]);
  }));
}

}  // namespace

TEST(processes_give_bitwise_what_one_process_gives) {
  const auto a = irregular(300, 6);
  const auto part = random_partition(a.n(), 3, 2);
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners)
      expect_same<double>(a.view(), part, 3, 2, -1, solve_spec(method, pc));
}

TEST(processes_send_halos_as_packets_too) {
  const auto a = irregular(200, 3);
  expect_same<double>(a.view(), random_partition(a.n(), 4, 1), 4, 1, 1,
                      solve_spec(Method::prcg, Preconditioner::jacobi));
}

TEST(processes_solve_in_single_precision) {
  const auto a = grid2d<float>(20, 15, 0.5);
  SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
  how.rtol = 1e-5;
  expect_same<float>(a.view(), random_partition(a.n(), 2, 4), 2, 2, -1, how);
}

TEST(parts_of_very_different_size_share_one_layout_of_memory) {
  const auto a = grid2d(25, 20, 0.1);
  std::vector<std::int32_t> part(500, 1);
  for (std::size_t i = 0; i < 7; ++i) part[i] = 0;
  for (std::size_t i = 450; i < 500; ++i) part[i] = 2;
  expect_same<double>(a.view(), part, 3, 2, -1, solve_spec(Method::cg, Preconditioner::jacobi));
}

TEST(a_team_of_one_solves) {
  const auto a = grid2d(12, 9, 0.1);
  expect_same<double>(a.view(), {}, 1, 1, -1, solve_spec(Method::prcg, Preconditioner::jacobi));
}

TEST(ranks_keep_their_own_rows_where_nobody_wants_all) {
  const auto a = irregular(200, 3);
  const auto part = random_partition(a.n(), 3, 1);
  const auto b = wave(a.n());
  rethrow(run_team(3, [&](const std::shared_ptr<Team>& team) {
    const auto system = make_system<double>(a.view(), part, {}, spec_for(3, 1, team));
    SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
    how.gather = false;
    const auto found = system->solve(b, {}, how, {});
    for (std::size_t i = 0; i < found.x.size(); ++i)
      CHECK_EQ(std::isfinite(found.x[i]), part[i] == team->rank());
  }));
}

TEST(one_system_of_a_team_solves_again_and_again) {
  const auto a = irregular(200, 3);
  const auto b = wave(a.n());
  rethrow(run_team(3, [&](const std::shared_ptr<Team>& team) {
    const auto system =
        make_system<double>(a.view(), random_partition(a.n(), 3, 1), {}, spec_for(3, 2, team));
    const SolveSpec how = solve_spec(Method::prcg, Preconditioner::jacobi);
    const auto first = system->solve(b, {}, how, {});
    for (int round = 0; round < 20; ++round) {
      const auto again = system->solve(b, {}, how, {});
      CHECK_EQ(again.outcome.reason, Reason::converged_rtol);
      if (team->rank() == 0) CHECK(again.x == first.x);
    }
  }));
}

TEST(a_member_that_fails_in_mid_solve_ends_the_solve_of_all) {
  const auto a = grid2d(40, 40);
  const auto b = wave(a.n());
  std::atomic<int> ended{0};
  const auto thrown = run_team(3, [&](const std::shared_ptr<Team>& team) {
    const auto system = make_system<double>(a.view(), {}, {}, spec_for(3, 1, team));
    SolveSpec how = solve_spec(Method::cg, Preconditioner::none);
    how.rtol = 0.0;
    how.maxiter = std::int64_t{1} << 40;
    how.study = Study::no_compute;  // nothing but a failure ends it
    try {
      system->solve(b, {}, how, [&](std::int64_t, double) {
        if (team->rank() == 1) throw std::runtime_error("rank 1 has had enough");
        return true;
      });
    } catch (...) {
      ++ended;
      throw;
    }
  });
  CHECK_EQ(ended.load(), 3);
  for (const std::exception_ptr& error : thrown) CHECK(error != nullptr);
}

TEST(a_wait_that_lasts_too_long_is_told_with_the_blocks_of_all_members) {
  const auto a = grid2d(40, 40);
  const auto b = wave(a.n());
  const auto thrown = run_team(2, [&](const std::shared_ptr<Team>& team) {
    const auto system = make_system<double>(a.view(), {}, {}, spec_for(2, 2, team));
    SolveSpec how = solve_spec(Method::cg, Preconditioner::none);
    how.rtol = 0.0;
    how.maxiter = std::int64_t{1} << 40;
    how.study = Study::no_compute;  // nothing but a wait ends it
    how.wait_limit = 1e-9;          // the first one that is not over at once
    system->solve(b, {}, how, {});
  });
  for (const std::exception_ptr& error : thrown) {
    CHECK(error != nullptr);
    try {
      if (error) std::rethrow_exception(error);
    } catch (const WaitTimeout& timeout) {
      CHECK_EQ(timeout.blocks().size(), std::size_t{4});
      CHECK_EQ(timeout.blocks().back().pe, 1);
    }
  }
}

TEST(an_engine_of_many_processes_needs_a_team_of_as_many) {
  SystemSpec spec = spec_for(2, 1, nullptr);
  spec.engine = Engine::cpu_processes;
  CHECK_THROWS(InvalidInput, check(spec));
  Meeting meeting(3);
  spec.team = std::make_shared<ThreadTeam>(meeting, 0);
  CHECK_THROWS(InvalidInput, check(spec));
  spec.pes = 3;
  check(spec);
  spec.engine = Engine::cpu_threads;
  CHECK_THROWS(InvalidInput, check(spec));
}

namespace {
// Notes that it was given up.
class LoneTeam final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Bytes> all_gather(const char*, std::span<const std::byte>) override { return {}; }
  std::vector<Bytes> gather(const char*, std::span<const std::byte>) override { return {}; }
  std::vector<Bytes> exchange(const char*, const std::vector<Bytes>&) override { return {}; }
  void give_up(const std::string& message) override {
    said += message;
    told = true;
  }
  std::string said;
  std::atomic<bool> told{false};
};
}  // namespace

namespace {
// Notes how long the others are waited for.
class PatientTeam final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Bytes> all_gather(const char*, std::span<const std::byte> mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  std::vector<Bytes> all_gather_within(const char* what, std::span<const std::byte> mine,
                                       double seconds) override {
    limits.push_back(seconds);
    return all_gather(what, mine);
  }
  std::vector<Bytes> gather(const char*, std::span<const std::byte>) override { return {}; }
  std::vector<Bytes> exchange(const char*, const std::vector<Bytes>&) override { return {}; }
  std::vector<double> limits;
};
}  // namespace

TEST(after_a_wait_that_was_given_up_the_others_are_waited_for_a_short_time) {
  PatientTeam team;
  CHECK_THROWS(WaitTimeout, report_waits(&team, std::vector<WaitRecord>(2), 2, true, 60.0));
  CHECK(team.limits == std::vector<double>({kAnswerSeconds, kAnswerSeconds}));
}

TEST(at_the_end_of_a_kernel_the_others_have_the_time_of_a_wait_more) {
  PatientTeam team;
  report_waits(&team, std::vector<WaitRecord>(2), 2, false, 60.0);
  CHECK(team.limits == std::vector<double>({kAnswerSeconds + 60.0}));
}

TEST(what_ends_in_time_gives_up_nothing) {
  LoneTeam team;
  CHECK_EQ(within(team, std::chrono::seconds(60), "a sum", [] { return 42; }), 42);
  CHECK_EQ(team.said, std::string());
}

TEST(what_takes_too_long_gives_the_team_up_and_says_what_it_was) {
  LoneTeam team;
  within(team, std::chrono::milliseconds(20), "a nap", [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (!team.told && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  CHECK_EQ(team.said, std::string("a nap has not come to an end within 0.020 s"));
}

TEST(errors_pass_through_what_is_watched) {
  LoneTeam team;
  CHECK_THROWS(InvalidInput, within(team, std::chrono::seconds(60), "a sum",
                                    []() -> int { throw InvalidInput("no"); }));
}

TEST(a_segment_is_the_same_memory_under_two_addresses) {
  const auto mine = cpu_processes::Segment::make(1000);
  const auto other = cpu_processes::Segment::open(mine.address(), 1000);
  CHECK(mine.data() != other.data());
  mine.data()[999] = std::byte{42};
  CHECK_EQ(static_cast<int>(other.data()[999]), 42);
}

TEST(a_segment_smaller_than_expected_is_refused) {
  const auto mine = cpu_processes::Segment::make(1000);
  CHECK_THROWS(EngineError, cpu_processes::Segment::open(mine.address(), 2000));
}

TEST(a_file_that_has_a_name_is_no_segment) {
  std::string name = std::filesystem::temp_directory_path() / "cpufree-test-XXXXXX";
  const int file = mkstemp(name.data());
  CHECK(file >= 0);
  CHECK_EQ(ftruncate(file, 1000), 0);
  CHECK_THROWS(EngineError, cpu_processes::Segment::open({getpid(), file}, 1000));
  close(file);
  unlink(name.c_str());
}

TEST(a_file_in_shared_memory_is_no_segment) {
  char name[] = "/dev/shm/cpufree-test-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return;  // there is no such file system here
  CHECK_EQ(ftruncate(file, 1000), 0);
  CHECK_THROWS(EngineError, cpu_processes::Segment::open({getpid(), file}, 1000));
  close(file);
  unlink(name);
}

TEST(a_segment_that_was_closed_cannot_be_opened) {
  auto mine = cpu_processes::Segment::make(1000);
  const cpu_processes::SegmentAddress address = mine.address();
  mine.close_to_others();
  CHECK_THROWS(EngineError, cpu_processes::Segment::open(address, 1000));
}
