// Matrices laid out by the GPUs have the bytes of those that the host lays out; here both on the
// host (host_gpu), by the kernels that GPUs run.
#include <cmath>
#include <limits>
#include <string>

#include "compared_layouts.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/solvers/gpu/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_layouts;

TEST(matrices_of_all_kinds_have_the_bytes_that_the_host_makes) {
  for (const int pes : {1, 2, 3})
    for (const int blocks : {1, 2}) {
      check_same(grid2d<double>(23, 17), spec_for(pes, blocks, 1));
      check_same(irregular<double>(431, 5), spec_for(pes, blocks, 1));
      check_same(different(irregular<double>(431, 6)), spec_for(pes, blocks, 1));
      check_same(shuffled(grid2d<double>(31, 29), 3), spec_for(pes, blocks, 1));
      check_same(three_a_node(9, 8), spec_for(pes, blocks, 1));
      check_same(different(three_a_node(9, 8)), spec_for(pes, blocks, 1));
      check_same(far_apart<double>(500, 37), spec_for(pes, blocks, 1));
    }
}

TEST(single_precision_has_the_bytes_that_the_host_makes) {
  for (const int pes : {1, 2}) {
    check_same(grid2d<float>(23, 17), spec_for(pes, 2, 1));
    check_same(different(irregular<float>(431, 6)), spec_for(pes, 2, 1));
  }
}

TEST(values_in_single_precision_have_the_bytes_that_the_host_makes) {
  for (const int pes : {1, 2})
    for (const int lanes : {-1, 1}) {
      SystemSpec spec = spec_for(pes, 2, 1);
      spec.single_values = true;
      spec.lanes_log2 = lanes;
      check_same(different(irregular<double>(431, 6)), spec);
      check_same(different(three_a_node(9, 8)), spec);
      check_same(irregular<double>(431, 5), spec);
    }
}

TEST(solves_have_the_bits_of_those_with_layouts_by_the_host) {
  for (const int pes : {1, 2}) {
    check_solves(irregular<double>(131, 6), spec_for(pes, 2, 1));
    check_solves(different(irregular<float>(131, 6)), spec_for(pes, 2, 1));
  }
}

TEST(columns_in_windows_and_beyond_have_the_bytes_that_the_host_makes) {
  for (const int pes : {1, 2}) {
    check_same(far_apart<double>(150'000, 40'000), spec_for(pes, 2, 1));
    check_same(far_apart<double>(200'000, 15'000), spec_for(pes, 1, 1));
    check_same(far_nodes(50'000, 9'000), spec_for(pes, 1, 1));
    check_same(far_nodes(90'000, 30'000), spec_for(pes, 2, 1));
  }
}

TEST(every_option_of_formats_has_the_bytes_that_the_host_makes) {
  const auto long_rows = far_apart<double>(400, 2);
  for (const int pes : {1, 2}) {
    for (const int halo : {0, 1})
      for (const int compress : {0, -1}) {
        SystemSpec spec = spec_for(pes, 2, 1);
        spec.halo = halo;
        spec.compress = compress;
        check_same(irregular<double>(431, 5), spec);
      }
    for (const int lanes : {1, 2, 3}) {
      SystemSpec spec = spec_for(pes, 2, 1);
      spec.lanes_log2 = lanes;
      check_same(different(long_rows), spec);
      check_same(three_a_node(12, 12), spec);
    }
  }
}

TEST(awkward_sizes_have_the_bytes_that_the_host_makes) {
  for (const std::int32_t n : {1, 2, 31, 32, 33, 479, 480, 481, 961}) {
    check_same(irregular<double>(n, 9), spec_for(1, 1, 1));
    check_same(irregular<double>(n, 9), spec_for(1, 2, 1));
    if (n > 2) check_same(irregular<double>(n, 9), spec_for(2, 2, 1));
  }
  // A PE without rows, one whose rows all read ghosts, and blocks without rows.
  const auto a = grid2d<double>(8, 8);
  check_same(a, spec_for(3, 2, 1), consecutive(64, {0, 8, 64}));
  check_same(a, spec_for(3, 1, 1), consecutive(64, {3, 5, 64}));
}

TEST(blocks_of_255_256_and_257_values_are_coded_as_the_host_does) {
  for (const std::int32_t values : {254, 255, 256, 257}) {
    Entries e;
    for (std::int32_t i = 0; i < 600; ++i) e[{i, i}] = 1.0 + i % values;
    e[{3, 3}] = 1e-300;
    e[{4, 5}] = e[{5, 4}] = -0.0;
    e[{6, 7}] = e[{7, 6}] = 0.0;
    check_same(from_entries<double>(600, e), spec_for(1, 1, 1));
  }
}

TEST(halos_of_blocks_have_the_bytes_that_the_host_makes) {
  const LargerGpus gpus;
  for (const int pes : {1, 2, 3})
    for (const int blocks : {1, 2, 5}) {
      SystemSpec spec = spec_for(pes, blocks, 1);
      spec.halo = 2;
      check_same(grid2d<double>(43, 37), spec);
      check_same(grid2d<float>(43, 37), spec);
      check_same(different(grid2d<double>(43, 37)), spec);
      check_same(irregular<double>(731, 5), spec);
      check_same(shuffled(grid2d<double>(31, 29), 3), spec);
      check_same(three_a_node(12, 11), spec);
      check_same(different(three_a_node(12, 11)), spec);
      check_same(far_apart<double>(900, 37), spec);
    }
}

TEST(every_option_of_formats_has_the_bytes_that_the_host_makes_with_halos_of_blocks) {
  const LargerGpus gpus;
  for (const int pes : {1, 2})
    for (const auto& a : {three_a_node(14, 12), different(three_a_node(14, 12)),
                          different(far_apart<double>(400, 2)), irregular<double>(731, 5)})
      for (const int lanes : {-1, 0, 1, 3})
        for (const int compress : {0, -1}) {
          SystemSpec spec = spec_for(pes, 3, 1);
          spec.halo = 2;
          spec.lanes_log2 = lanes;
          spec.compress = compress;
          check_same(a, spec);
        }
}

TEST(awkward_sizes_have_the_bytes_that_the_host_makes_with_halos_of_blocks) {
  const LargerGpus gpus;
  for (const std::int32_t n : {1, 2, 31, 32, 33, 63, 64, 65, 480, 1025})
    for (const int blocks : {1, 2, 7})
      for (const int pes : {1, 2}) {
        if (n < 2 * pes) continue;
        SystemSpec spec = spec_for(pes, blocks, 1);
        spec.halo = 2;
        check_same(irregular<double>(n, 9), spec);
      }
  SystemSpec spec = spec_for(3, 2, 1);
  spec.halo = 2;
  const auto a = grid2d<double>(8, 8);
  check_same(a, spec, consecutive(64, {0, 8, 64}));
  check_same(a, spec, consecutive(64, {3, 5, 64}));
}

TEST(solves_with_halos_of_blocks_have_the_bits_of_those_with_layouts_by_the_host) {
  const LargerGpus gpus;
  for (const int pes : {1, 2}) {
    SystemSpec spec = spec_for(pes, 3, 1);
    spec.halo = 2;
    check_solves(irregular<double>(331, 6), spec);
    check_solves(different(three_a_node(8, 7)), spec);
  }
}

TEST(new_values_are_laid_out_by_the_gpus_as_in_a_new_system_with_halos_of_blocks) {
  const LargerGpus gpus;
  for (const int pes : {1, 2}) {
    const auto a = different(irregular<double>(431, 5));
    auto twice = a;
    for (double& value : twice.val) value *= 2.5;
    SystemSpec spec = spec_for(pes, 3, 1);
    spec.halo = 2;
    GpuSystem<double> updated(a.view(), {}, {}, spec);
    CHECK_EQ(updated.plan().block_halo, std::string("packets"));
    const GpuSystem<double> fresh(twice.view(), {}, {}, spec);
    CHECK(updated.update(twice.view()));
    CHECK_EQ(first_difference(updated, fresh, pes), -1);
  }
}

TEST(gpus_make_halos_of_blocks_where_these_pay) {
  for (const int pes : {1, 2})
    for (const bool read_much : {true, false}) {
      // Blocks of a shuffled grid read most rows of the others.
      const auto grid = grid2d<double>(100, 100);
      const auto a = read_much ? shuffled(grid, 3) : grid;
      SystemSpec spec = spec_for(pes, 2, 1);
      spec.halo = -1;
      check_same(a, spec);
      const GpuSystem<double> made(a.view(), {}, {}, spec);
      CHECK_EQ(made.plan().block_halo, std::string(read_much ? "flags" : "packets"));
    }
}

TEST(a_matrix_on_a_gpu_gets_the_halos_of_blocks_of_one_on_the_host) {
  SystemSpec spec = spec_for(1, 2, -1);
  spec.halo = -1;
  spec.gpus = {0};
  for (const bool read_much : {true, false}) {
    const auto grid = grid2d<double>(100, 100);
    const auto a = read_much ? shuffled(grid, 3) : grid;
    const gpu::DeviceArray<std::int64_t> ptr(0, a.row_ptr);
    const gpu::DeviceArray<std::int32_t> col(0, a.col);
    const gpu::DeviceArray<double> val(0, a.val);
    const GpuSystem<double> made(
        GivenCsr<double>{a.n(), ptr.data(), true, col.data(), val.data(), 0}, spec);
    const GpuSystem<double> host(a.view(), {}, {}, spec);
    CHECK_EQ(made.plan().block_halo, std::string(read_much ? "flags" : "packets"));
    CHECK_EQ(first_difference(host, made, 1), -1);
  }
}

TEST(the_plan_tells_of_the_solve_that_is_expected_first) {
  SystemSpec spec = spec_for(1, 2, 0);
  const auto a = grid2d<double>(40, 40);
  const GpuSystem<double> usual(a.view(), {}, {}, spec);
  spec.first.method = Method::pipecg;
  spec.first.preconditioner = Preconditioner::chebyshev;
  const GpuSystem<double> other(a.view(), {}, {}, spec);
  CHECK(usual.plan().shared_bytes != other.plan().shared_bytes);
}

TEST(a_matrix_in_32_bits_on_a_gpu_is_laid_out_as_one_on_the_host) {
  const auto a = irregular<double>(431, 5);
  std::vector<std::int32_t> begins(a.row_ptr.begin(), a.row_ptr.end());
  GpuSystem<double> host(a.view(), {}, {}, spec_for(1, 2, 0));
  for (const int device : {0, 1}) {  // of the matrix; the system is on device 0
    const gpu::DeviceArray<std::int32_t> ptr(device, begins), col(device, a.col);
    const gpu::DeviceArray<double> val(device, a.val);
    SystemSpec spec = spec_for(1, 2, -1);
    spec.gpus = {0};
    const GpuSystem<double> made(
        GivenCsr<double>{a.n(), ptr.data(), false, col.data(), val.data(), device}, spec);
    CHECK_EQ(first_difference(host, made, 1), -1);
    auto wrong = a.col;
    std::swap(wrong[1], wrong[2]);
    const gpu::DeviceArray<std::int32_t> unsorted(device, wrong);
    const GpuSystem<double> refused(
        GivenCsr<double>{a.n(), ptr.data(), false, unsorted.data(), val.data(), device}, spec);
    CHECK(refused.plan().refused.starts_with("the columns of each row must increase"));
    CHECK(!refused.usable());
  }
}

TEST(a_matrix_on_a_gpu_is_asked_no_room_for_a_copy_of_it) {
  const auto a = irregular<double>(431, 5);
  const gpu::DeviceArray<std::int64_t> ptr(0, a.row_ptr);
  const gpu::DeviceArray<std::int32_t> col(0, a.col);
  const gpu::DeviceArray<double> val(0, a.val);
  const auto laid_out = [&](double copies, int device) {
    host_gpu::Settings settings;
    settings.memory = static_cast<std::size_t>(copies * 12.0 * static_cast<double>(a.col.size())) +
                      128 * a.row_ptr.size();
    host_gpu::configure(settings);
    SystemSpec spec = spec_for(1, 2, -1);
    spec.gpus = {device};
    return GpuSystem<double>(GivenCsr<double>{a.n(), ptr.data(), true, col.data(), val.data(), 0},
                             spec)
        .plan()
        .refused.empty();
  };
  CHECK(laid_out(2.6, 0));
  CHECK(!laid_out(2.4, 0));
  CHECK(!laid_out(3.4, 1));
  CHECK(laid_out(3.6, 1));
  host_gpu::configure({});
}

TEST(new_values_are_laid_out_by_the_gpus_as_in_a_new_system) {
  for (const int pes : {1, 2}) {
    const auto a = different(irregular<double>(431, 5));
    auto twice = a;
    for (double& value : twice.val) value *= 2.5;
    GpuSystem<double> updated(a.view(), {}, {}, spec_for(pes, 2, 1));
    const GpuSystem<double> fresh(twice.view(), {}, {}, spec_for(pes, 2, 1));
    CHECK(updated.update(twice.view()));
    CHECK_EQ(first_difference(updated, fresh, pes), -1);
    CHECK(updated.usable());
  }
  // Values that have become few: they would be coded, and do not fit.
  const auto a = different(grid2d<double>(20, 20));
  auto few = a;
  for (std::size_t k = 0; k < few.val.size(); ++k) few.val[k] = few.val[k] > 0 ? 4.0 : -1.0;
  GpuSystem<double> system(a.view(), {}, {}, spec_for(1, 2, 1));
  const GpuSystem<double> before(a.view(), {}, {}, spec_for(1, 2, 1));
  CHECK(!system.update(few.view()));
  CHECK_EQ(first_difference(system, before, 1), -1);
}

TEST(new_values_at_other_places_are_refused) {
  Entries one, other;
  for (std::int32_t i = 0; i < 40; ++i) one[{i, i}] = other[{i, i}] = 4.0;
  one[{3, 9}] = one[{9, 3}] = other[{3, 8}] = other[{8, 3}] = -1.0;
  const auto a = from_entries<double>(40, one), b = from_entries<double>(40, other);
  GpuSystem<double> system(a.view(), {}, {}, spec_for(1, 2, 1));
  CHECK_THROWS(InvalidInput, system.update(b.view()));
  CHECK(system.usable());
}

TEST(what_gpus_find_in_entries_is_what_the_host_finds) {
  const auto inspected = [](const Matrix<double>& a, int pes) {
    SystemSpec spec = spec_for(pes, 2, 1);
    spec.inspect = true;
    return GpuSystem<double>(a.view(), {}, {}, spec).plan();
  };
  for (const int pes : {1, 2}) {
    auto a = grid2d<double>(9, 9);
    CHECK(inspected(a, pes).entries.value().symmetric);
    CHECK_EQ(inspected(a, pes).entries.value().asymmetry, 0.0);
    a.val[at(a.row_ptr[40])] *= 1.0 + 1e-13;
    CHECK(!inspected(a, pes).entries.value().symmetric);
    CHECK_EQ(inspected(a, pes).entries.value().asymmetry, inspect(a.view()).asymmetry);
    CHECK(inspected(a, pes).refused.empty());
    CHECK(inspect(a.view()).asymmetry > 0.0);
    for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
      auto b = grid2d<double>(9, 9);
      for (std::size_t k = 0; k < b.val.size(); ++k)
        if (b.val[k] > 0 && k > 200) b.val[k] = wrong;
      CHECK(inspected(b, pes).refused.starts_with("entries of the matrix are not finite"));
    }
  }
}

TEST(rows_that_are_coupled_one_way_only_are_refused) {
  Entries e;
  for (std::int32_t i = 0; i < 60; ++i) e[{i, i}] = 4.0;
  e[{5, 50}] = -1.0;  // between PEs: the proofs of the channels rest on it
  const auto a = from_entries<double>(60, e);
  CHECK_THROWS(InvalidInput, GpuSystem<double>(a.view(), {}, {}, spec_for(2, 2, 1)));
  SystemSpec spec = spec_for(1, 2, 1);
  spec.inspect = true;
  GpuSystem<double> refused(a.view(), {}, {}, spec);
  CHECK_EQ(refused.plan().refused, std::string("the pattern of the matrix is not symmetric"));
  CHECK(!refused.usable());
  CHECK_THROWS(Error, static_cast<System<double>&>(refused).solve(wave<double>(60), {},
                                                                  some_iterations(), {}));
}

TEST(what_the_host_is_to_lay_out_is_not_inspected_by_gpus) {
  const auto a = grid2d<double>(8, 8);
  SystemSpec spec = spec_for(2, 2, 1);
  spec.layout = 0;
  spec.inspect = true;
  const GpuSystem<double> system(a.view(), {}, {}, spec);
  CHECK(system.plan().refused.starts_with("the host is to lay"));
  CHECK(!system.usable());
}

TEST(arrays_that_are_no_rows_are_refused) {
  auto a = grid2d<double>(8, 8);
  auto wrong = a;
  std::swap(wrong.col[10], wrong.col[11]);
  CHECK_THROWS(InvalidInput, GpuSystem<double>(wrong.view(), {}, {}, spec_for(1, 2, 1)));
  wrong = a;
  wrong.col.back() = 64;
  CHECK_THROWS(InvalidInput, GpuSystem<double>(wrong.view(), {}, {}, spec_for(2, 2, 1)));
  wrong = a;
  wrong.col[0] = -1;
  CHECK_THROWS(InvalidInput, GpuSystem<double>(wrong.view(), {}, {}, spec_for(1, 2, 1)));
  wrong = a;
  std::swap(wrong.row_ptr[5], wrong.row_ptr[6]);
  CHECK_THROWS(InvalidInput, GpuSystem<double>(wrong.view(), {}, {}, spec_for(1, 2, 1)));
  SystemSpec spec = spec_for(1, 2, 1);
  spec.inspect = true;
  CHECK_EQ(GpuSystem<double>(wrong.view(), {}, {}, spec).plan().refused,
           std::string("indptr decreases"));
}

TEST(shares_that_cannot_stay_on_chip_are_read_as_any_others) {
  LayoutFacts facts;
  facts.sizes.resize(2);
  for (ShareSize& share : facts.sizes) {
    share.matrix.units = 1000;
    share.matrix.kinds = kSingles | kPlainValues;
  }
  facts.sizes[0].matrix.kinds |= kSimpleColumns;
  CHECK_EQ(kinds_of(facts), kSingles | kPlainValues | kSimpleColumns);
  facts.sizes[1].matrix.units = 2000;  // 256 000 bytes
  CHECK_EQ(kinds_of(facts), kSingles | kPlainValues);
}
