// Jacobi iterations whose halos are triggered puts, under random schedules: the bits of the
// reference, however the grid is divided.
#include "cpufree/reference/jacobi.hpp"
#include "cpufree/triggered/device/triggered_jacobi.hpp"
#include "harness.hpp"
#include "trigger_rig.hpp"

using namespace cpufree;
using namespace trigger_rig;

namespace {

template <class T>
T start_value(std::int64_t i) {
  return static_cast<T>(static_cast<double>((i * 2654435761U) % 1000) / 7.0);
}

template <class T>
struct Case {
  StripShape shape;
  std::uint32_t iterations;
  Symmetric<T> values;
  Rig rig;
  std::vector<T> expected;

  Case(std::int64_t rows, std::int32_t columns, int pes, int blocks, std::uint32_t n)
      : shape{rows, columns, pes, blocks},
        iterations(n),
        rig({pes, blocks, 8, 2 * blocks, 2 * blocks}, [this](SymmetricLayout& layout) {
          values = layout.reserve<T>(static_cast<std::size_t>(shape.values()));
        }) {
    std::vector<T> u(static_cast<std::size_t>(rows * columns));
    for (std::size_t k = 0; k < u.size(); ++k) u[k] = start_value<T>(static_cast<std::int64_t>(k));
    Grid grid;
    grid.n[0] = rows;
    grid.n[2] = columns;
    expected = reference::jacobi(u, static_cast<const T*>(nullptr), grid, n);
  }

  void fill(int pe) {
    for (int block = 0; block < shape.blocks; ++block) {
      const int number = pe * shape.blocks + block;
      for (std::int64_t row = shape.first(number) - 1; row <= shape.first(number + 1); ++row)
        for (int parity = 0; parity < 2; ++parity)
          for (std::int32_t x = 0; x < shape.columns; ++x)
            rig.mine(values, pe)[shape.place(block, parity, row - shape.first(number)) + x] =
                start_value<T>(row * shape.columns + x);
    }
  }

  std::int64_t wrong_values() {
    std::int64_t wrong = 0;
    for (int number = 0; number < shape.all(); ++number)
      for (std::int64_t row = shape.first(number); row < shape.first(number + 1); ++row)
        for (std::int32_t x = 0; x < shape.columns; ++x) {
          const int parity = static_cast<int>((iterations + 1) % 2);
          const T got =
              rig.mine(values, number / shape.blocks)[shape.place(number % shape.blocks, parity,
                                                                  row - shape.first(number)) +
                                                      x];
          wrong += got == expected[static_cast<std::size_t>(row * shape.columns + x)] ? 0 : 1;
        }
    return wrong;
  }

  void post_all(TriggerPosts<WeakPort>& host, int pe) {
    for (int block = 0; block < shape.blocks; ++block)
      for (int side = 0; side < 2; ++side) {
        StripEdge edge;
        if (edge_of(shape, pe, block, side, edge) && edge.pe != pe &&
            !host.post(operation_of<T>(shape, edge, block, values.offset, iterations)))
          return;
      }
  }

  void check(std::uint64_t schedules, Dropped dropped = {}) {
    std::int64_t wrong = 0;
    int hung = 0;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      const bool ended = rig.run(
          seed, [&](auto& host, int pe) { post_all(host, pe); },
          [&](WeakPort& port, const TriggerBoard& board) {
            Triggers<WeakPort> triggers(port, board, port.pe());
            const TriggeredJacobiArgs<T> args{shape, rig.mine(values, port.pe()), iterations};
            if (TriggeredJacobi<WeakPort, T>(port, board, triggers, args).run())
              end_all(port, board, triggers);
          },
          dropped, [&](int pe) { fill(pe); });
      hung += ended ? 0 : 1;
      wrong += wrong_values();
    }
    CHECK_EQ(hung, 0);
    if (dropped.fence == Fence::none)
      CHECK_EQ(wrong, 0);
    else
      CHECK(wrong > 0);
  }
};

std::uint64_t schedules() { return static_cast<std::uint64_t>(harness::schedules(40, 1000)); }

}  // namespace

TEST(strips_of_two_pes_give_the_bits_of_the_reference) {
  Case<double>(12, 7, 2, 2, 9).check(schedules());
}

TEST(strips_of_one_row_give_the_bits_of_the_reference) {
  Case<double>(8, 5, 3, 2, 8).check(schedules());
}

TEST(single_precision_gives_the_bits_of_the_reference) {
  Case<float>(11, 9, 3, 1, 7).check(schedules());
}

TEST(one_pe_of_one_block_needs_nobody) { Case<double>(6, 6, 1, 1, 5).check(2); }

TEST(no_iteration_changes_nothing) { Case<double>(8, 5, 2, 1, 0).check(2); }

TEST(without_release_by_the_nic_the_bits_are_wrong) {
  Case<double>(12, 7, 2, 2, 9).check(40, {Role::nic, Fence::publish});
}
