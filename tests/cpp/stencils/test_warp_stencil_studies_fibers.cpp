// Studies of the stencil kernels for blocks of warps, under random schedules.
#include "warp_stencil_rig.hpp"

using namespace warp_stencils;

namespace {

// The values after as many iterations of each PE's slab of planes by itself, whose halo keeps its
// first values.
template <class T>
std::vector<T> slabs_alone(const Case<T>& c, int pes, std::int64_t iterations) {
  std::vector<T> values = c.start;
  const std::int64_t row = c.grid.n[1] * c.grid.n[2], planes = c.grid.n[0] - 2;
  for (int pe = 0; pe < pes; ++pe) {
    const std::int64_t begin = planes * pe / pes, end = planes * (pe + 1) / pes + 2;
    Grid slab = c.grid;
    slab.n[0] = end - begin;
    const std::vector<T> mine(c.start.begin() + begin * row, c.start.begin() + end * row);
    const auto out = reference::jacobi<T>(mine, nullptr, slab, iterations);
    std::copy(out.begin() + row, out.end() - row, values.begin() + (begin + 1) * row);
  }
  return values;
}

// The exchanges and checks of a study are those of the kernel.
template <class T>
void check_exchanges(const Ran<T>& study, const Ran<T>& normal) {
  CHECK(study.fits && study.ended && normal.ended);
  CHECK_EQ(study.outcome.iterations, kIterations);
  CHECK_EQ(study.outcome.exchanges, normal.outcome.exchanges);
  CHECK_EQ(study.outcome.checks, normal.outcome.checks);
}

const Setup kLooks[] = {{1, 2, false, -1.0, 2}, {2, 2, false, -1.0, 2}};  // one PE, two

}  // namespace

TEST(without_computing_all_exchanges_take_place_and_no_value_changes) {
  const Grid flat = grid2d(18, 40, true, false), box = grid3d(8, 4, 12, 1U);
  std::uint64_t seed = 1;
  for (const Setup& setup : kLooks) {
    constexpr Study S = Study::no_compute;
    const auto passes = in_memory<double, 2, 2, S>(flat, setup, ++seed);
    check_exchanges(passes, in_memory<double, 2, 2>(flat, setup, seed));
    CHECK(same_bits(passes.c.out, passes.c.start));
    const auto layout = in_registers_3d<float, 1, 4, S>(box, setup, ++seed);
    check_exchanges(layout, in_registers_3d<float, 1, 4>(box, setup, seed));
    CHECK(same_bits(layout.c.out, layout.c.start));
    const auto planes = in_memory<float, 3, 1, S>(box, setup, ++seed);
    check_exchanges(planes, in_memory<float, 3, 1>(box, setup, seed));
    CHECK(same_bits(planes.c.out, planes.c.start));
  }
}

TEST(without_communication_each_pe_computes_its_slab_alone) {
  const Grid flat = grid2d(18, 15), box = grid3d(10, 5, 9);
  std::uint64_t seed = 1;
  for (const Setup& setup : kLooks) {
    constexpr Study S = Study::no_comm;
    const auto check = [&](const auto& ran) {
      CHECK(ran.fits && ran.ended);
      CHECK_EQ(ran.outcome.iterations, kIterations);
      CHECK(same_bits(ran.c.out, slabs_alone(ran.c, setup.pes, kIterations)));
    };
    check(in_memory<double, 2, 1, S>(flat, setup, ++seed));
    check(in_registers_3d<double, 1, 4, S>(box, setup, ++seed));
    check(in_registers_3d<float, 2, 4, S>(box, setup, ++seed));
    check(in_memory<float, 3, 1, S>(box, setup, ++seed));
  }
}
