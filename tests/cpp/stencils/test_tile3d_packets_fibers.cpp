// 3-D tiles whose halos travel as packets, thread by thread under random schedules: bit for bit
// what the reference computes, and what comes of a packet that is lost.
#include "warp_stencil_rig.hpp"

using namespace warp_stencils;

TEST(tiles_that_exchange_packets_equal_the_reference) {
  Count count;
  harness::Sample sample(2);
  std::uint64_t seed = 0;
  for (unsigned periodic = 0; periodic < 8; ++periodic)
    for (const auto& [nz, ny, nx] : {std::tuple{5, 4, 6}, {10, 6, 33}, {9, 5, 70}, {17, 4, 35}}) {
      ++seed;
      if (!sample.next()) continue;
      const int pes = 1 + static_cast<int>((seed + periodic) % 2);
      const Grid grid = grid3d(nz, ny, nx, periodic);
      Setup setup{pes, 1 + static_cast<int>(seed % 4) / pes, seed % 2 == 0};
      setup.check_every = 1 + static_cast<int>(seed % 5);
      count.add(in_registers_3d<float, 1, 4>(grid, setup, seed), grid, setup, "1 x 4");
      count.add(in_registers_3d<float, 4, 8>(grid, setup, seed), grid, setup, "4 x 8");
      count.add(in_registers_3d<float, 2, 16>(grid, setup, seed), grid, setup, "2 x 16");
      count.add(in_registers_3d<double, 2, 4>(grid, setup, seed), grid, setup, "2 x 4 double");
      count.add(in_registers_3d<double, 1, 8>(grid, setup, seed), grid, setup, "1 x 8 double");
    }
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, harness::thorough ? 26 : 13);
}

// Grids of which only one axis can be cut, into two tiles for each PE: all faces of that axis
// travel.
TEST(packets_cross_every_axis_among_up_to_five_pes) {
  Count count;
  std::uint64_t seed = 1;
  for (int pes = 1; pes <= 5; ++pes)
    for (int axis = 0; axis < 3; ++axis) {
      std::int64_t inner[3] = {4, 3, 30};
      inner[axis] = (axis == 2 ? 32 : 4) * 2 * pes - (pes % 2);
      const unsigned periodic = seed % 2 == 0 ? 0U : 1U << static_cast<unsigned>(axis);
      for (int a = 0; a < 3; ++a)
        if (((periodic >> static_cast<unsigned>(a)) & 1U) == 0) inner[a] += 2;
      const Grid grid = grid3d(inner[0], inner[1], inner[2], periodic);
      Setup setup{pes, 2, false};
      setup.most = setup.expected = 4;
      const auto ran = in_registers_3d<float, 1, 4>(grid, setup, seed++);
      CHECK(ran.fits);
      count.add(ran, grid, setup, "1 x 4");
    }
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, 15);
}

TEST(tiles_with_packets_stop_where_the_tolerance_stops_others) {
  Case<double> box(grid3d(9, 6, 8), 10000);
  box.run.tolerance = 0.05;
  box.run.check_every = 2;
  const std::int64_t stop = box.go().outcome.iterations;
  CHECK(stop > 4 && stop < 100);
  Count count;
  const Setup setup{1, 4, false, 0.05, 2, 10000, stop};
  count.add(in_registers_3d<double, 1, 4>(box.grid, setup, 3), box.grid, setup, "registers_3d");
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, 1);
}

// Two PEs with a tile each, one after the other along `axis`, which is cut and not periodic. Signal
// `at` of thread `thread` of PE 0 is lost: PE 1 must tell that it waits for PE 0, and since when.
void check_lost(int axis, int thread, std::int64_t at, Epoch exchange) {
  std::int64_t n[3] = {6, 5, 8};
  n[axis] += axis == 2 ? 120 : axis == 1 ? 5 : 4;
  const Grid grid = grid3d(n[0], n[1], n[2]);
  const Setup setup{2, 1, false};
  warp_rig::Mishap mishap{{cpu_fibers::Fault::Kind::drop_signal, 0, thread, at}, 300'000};
  const auto ran = in_registers_3d<float, 4, 4>(grid, setup, 7, &mishap);
  CHECK(ran.fits && !ran.ended);
  int told = 0;
  for (const WaitRecord& record : mishap.records) {
    if (record.state != BlockState::expired || record.from_pe != 0 || record.want != exchange)
      continue;
    CHECK(record.channel == Channel::halo_arrival);
    CHECK_EQ(record.from_block, 0);
    CHECK_EQ(record.seen, exchange > 2 ? exchange - 2 : 0);
    ++told;
  }
  CHECK(told > 0);
}

TEST(packet_of_a_row_that_is_lost_is_diagnosed) {
  check_lost(0, 32 + 6, 4, 3);  // an even lane has two packets of a row
  check_lost(0, 32 + 6, 5, 3);
  check_lost(0, 32 + 7, 3, 4);  // an odd one has one
  check_lost(0, 30, 1, 1);      // the last of all, for which receivers look first
}

TEST(packet_of_a_group_of_planes_that_is_lost_is_diagnosed) {
  check_lost(1, 3 * 32 + 5, 6, 2);  // 6 packets of a lane of the last warp
  check_lost(1, 3 * 32 + 31, 5, 1);
}

TEST(packet_of_a_column_that_is_lost_is_diagnosed) {
  check_lost(2, 32 + 16, 2, 3);  // one packet of a lane, two lanes
  check_lost(2, 32 + 17, 0, 1);
}

TEST(packets_are_told_apart_when_their_numbers_wrap) {
  const Epoch wrap = Epoch{1} << 32U;
  const auto packet_of = [](Epoch epoch) {
    return FloatPacket{{}, static_cast<std::uint32_t>(epoch)};
  };
  for (const Epoch want : {Epoch{1}, Epoch{2}, wrap - 1, wrap, wrap + 1, wrap + 2, 3 * wrap}) {
    CHECK(arrived(packet_of(want), want));
    CHECK(!arrived(packet_of(want - 2), want) && (want > 2 || !arrived(FloatPacket{}, want)));
    CHECK_EQ(epoch_of(packet_of(want), want), want);
    if (want > 2) CHECK_EQ(epoch_of(packet_of(want - 2), want), want - 2);
    if (want <= 2) CHECK_EQ(epoch_of(FloatPacket{}, want), 0U);
  }
}
