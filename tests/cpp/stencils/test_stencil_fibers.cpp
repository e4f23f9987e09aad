// The Jacobi kernel under random schedules and weak memory; and what becomes of it when a signal is
// lost, repeated or late, a block dies, or a part of the protocol is taken away.
#include <algorithm>

#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/stencils/host/host_stencil.hpp"
#include "cpufree/stencils/jacobi.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"

using namespace stencil_rig;
using cpu_fibers::Fault;

namespace {

constexpr int kIterations = 7;

// Takes what it finds for what it waits for.
class ImpatientPort : public cpu_fibers::Port {
 public:
  using cpu_fibers::Port::Port;
  Packet get_packet(const Packet* packet) {
    return {cpu_fibers::Port::get_packet(packet).value, make_tag(Epoch{1} << 40, 0U)};
  }
  Epoch get_flag(const Flag*) { return Epoch{1} << 40; }
};

struct Setup {
  int pes = 2, blocks = 2, layers = 1, halo = 1;
  bool one_parity = false;  // a protocol with a part taken away
};

// A small grid on fibers, run under one schedule after another.
class FiberCase {
 public:
  FiberCase(const Grid& grid, const Setup& setup) : c_(grid, kIterations, true), setup_(setup) {
    c_.spec.layers = setup.layers;
    c_.spec.halo = setup.halo;
    c_.run.check_every = 1000;
    layout_ = lay_out_stencil(grid, with_pes(), c_.run, setup.blocks, sizeof(double), true, {});
    expected_ = c_.expected(kIterations);
  }

  void stop_at(double tolerance, std::int64_t check_every) {
    c_.run.tolerance = tolerance;
    layout_.plan.check_every = check_every;
  }

  // True if no wait was given up.
  template <class P = cpu_fibers::Port>
  bool run(std::uint64_t seed, const Fault& fault = {}) {
    c_.out.assign(c_.out.size(), -1.0);
    HostStencil<double> stencil(c_.problem(), layout_, c_.run);
    if (setup_.one_parity)
      for (int pe = 0; pe < layout_.plan.pes; ++pe) stencil.args(pe).mailboxes.size = 0;
    machine_ = std::make_unique<cpu_fibers::Machine>(
        cpu_fibers::Config{layout_.plan.pes, layout_.plan.blocks, stencil.heaps(), seed, fault},
        [&](int pe, int block) {
          P port(*machine_, pe, block);
          c_.grid.dims == 2 ? jacobi_kernel<2, true>(port, stencil.args(pe))
                            : jacobi_kernel<3, true>(port, stencil.args(pe));
        });
    const bool ended = machine_->run();
    outcome = stencil.result(0.0).outcome;
    return ended;
  }
  bool right() const { return same_bits(c_.out, expected_); }
  bool right_at(std::int64_t iterations) const {
    return same_bits(c_.out, c_.expected(iterations));
  }
  const cpu_fibers::Machine& machine() const { return *machine_; }
  const StencilPlan& plan() const { return layout_.plan; }

  StencilOutcome outcome;

 private:
  StencilSpec with_pes() {
    c_.spec.pes = setup_.pes;
    return c_.spec;
  }

  Case<double> c_;
  Setup setup_;
  StencilLayout layout_;
  std::vector<double> expected_;
  std::unique_ptr<cpu_fibers::Machine> machine_;
};

// Every schedule ends, with the bits of the reference.
void check_schedules(const Grid& grid, int halo, int schedules) {
  for (const int pes : {1, 2, 3, 4, 5})
    for (const int layers : {1, 2}) {
      FiberCase c(grid, {pes, 1 + pes % 2, layers, halo});
      int stuck = 0, wrong = 0;
      for (int seed = 1; seed <= schedules; ++seed) {
        stuck += c.run(static_cast<std::uint64_t>(seed)) ? 0 : 1;
        wrong += c.right() ? 0 : 1;
      }
      CHECK_EQ(stuck, 0);
      CHECK_EQ(wrong, 0);
    }
}

// A block waited for block 0 of PE 1 in vain.
bool names_sender(const cpu_fibers::Machine& machine) {
  return std::ranges::any_of(machine.records(), [](const WaitRecord& r) {
    return r.state == BlockState::expired && r.channel == Channel::halo_arrival && r.from_pe == 1 &&
           r.from_block == 0 && !reached(r.seen, r.want);
  });
}

template <class P>
int wrong_schedules(FiberCase& c, const Fault& fault) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    static_cast<void>(c.run<P>(seed, fault));
    wrong += c.right() ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST(packets_in_two_dimensions_are_right_under_every_schedule) {
  check_schedules(grid2d(8, 7), 1, 100);
}
TEST(values_in_two_dimensions_are_right_under_every_schedule) {
  check_schedules(grid2d(8, 7), 0, 100);
}
TEST(packets_on_a_torus_are_right_under_every_schedule) {
  check_schedules(grid2d(6, 5, true, true), 1, 60);
}
TEST(values_in_three_dimensions_are_right_under_every_schedule) {
  check_schedules(grid3d(6, 5, 5, 1), 0, 30);
}

TEST(tolerance_stops_every_schedule_at_the_same_iteration) {
  FiberCase c(grid2d(8, 7), {3, 1, 2, 1});
  c.stop_at(1e9, 3);  // met at the first check
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CHECK(c.run(seed));
    CHECK_EQ(c.outcome.iterations, 3);
    CHECK(c.right_at(3));
  }
}

TEST(checks_that_are_not_waited_for_are_right_under_every_schedule) {
  FiberCase c(grid2d(8, 7), {3, 2, 1, 1});
  c.stop_at(-1.0, 1);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) CHECK(c.run(seed) && c.right());
  CHECK_EQ(c.outcome.checks, kIterations - 1);
}

TEST(lost_packet_ends_in_a_diagnosis_that_names_its_sender) {
  FiberCase c(grid2d(9, 9), {2, 2, 1, 1});
  for (std::int64_t at = 0; at < 12; ++at) {
    CHECK(!c.run(3, {Fault::Kind::drop_signal, 1, 0, at}));
    CHECK(names_sender(c.machine()));
  }
}

TEST(lost_flag_is_made_good_by_the_next_one_or_named) {
  FiberCase c(grid2d(9, 9), {2, 2, 1, 0});
  int ended = 0, named = 0;
  for (std::int64_t at = 0; at < 2 * (kIterations - 1); ++at) {
    const bool end = c.run(3, {Fault::Kind::drop_signal, 1, 0, at});
    CHECK(end ? c.right() : names_sender(c.machine()));
    ++(end ? ended : named);
  }
  CHECK_EQ(named, 2);  // of the last exchange, to two neighbours
  CHECK_EQ(ended, 2 * (kIterations - 2));
}

TEST(repeated_and_late_signals_change_nothing) {
  for (const auto kind : {Fault::Kind::repeat_signal, Fault::Kind::delay_signal})
    for (const int halo : {0, 1}) {
      FiberCase c(grid2d(9, 9), {2, 2, 1, halo});
      for (std::int64_t at = 0; at < 20; ++at)
        CHECK(c.run(static_cast<std::uint64_t>(at), {kind, 0, 1, at}) && c.right());
    }
}

TEST(dead_block_ends_everybody_elses_kernel) {
  FiberCase c(grid2d(9, 9), {2, 2, 1, 1});
  for (const std::int64_t at : {0, 5, 50}) {
    CHECK(!c.run(11, {Fault::Kind::kill_block, 1, 1, at}));
    CHECK_EQ(std::ranges::count(c.machine().records(), BlockState::expired, &WaitRecord::state), 3);
  }
}

// --- The check of the checker: without each part of the protocol some schedule must go wrong. ---

TEST(values_without_publish_are_caught_by_weak_memory) {
  FiberCase c(grid2d(9, 9), {3, 1, 1, 0});
  CHECK(c.run(1) && c.right());
  CHECK(wrong_schedules<cpu_fibers::Port>(c, {Fault::Kind::skip_publish, 0, 0, 0}) > 20);
}

TEST(values_taken_without_looking_at_epochs_are_caught) {
  for (const int halo : {0, 1}) {
    FiberCase c(grid2d(9, 9), {3, 1, 1, halo});
    CHECK(wrong_schedules<ImpatientPort>(c, {}) > 20);
  }
}

TEST(mailboxes_of_one_parity_are_caught) {
  for (const int halo : {0, 1}) {
    FiberCase c(grid2d(9, 9), {3, 1, 1, halo, true});
    CHECK(wrong_schedules<cpu_fibers::Port>(c, {}) > 20);
  }
}
