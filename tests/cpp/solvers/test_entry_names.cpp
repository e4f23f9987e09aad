// What kernels call columns, found for all entries at once.
#include "cpufree/solvers/gpu/share_layout.hpp"

#include <algorithm>

#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

struct Example {
  HaloPlan<double> plan;
  std::vector<std::vector<BlockPlan>> blocks;
  Example(int pes, int count) {
    const auto a = irregular(3000, 23);
    plan = make_halo_plan(a.view(), random_partition(a.n(), pes, 2), {}, pes);
    blocks = make_block_halos(plan, {}, count)->plans;
  }
  std::vector<PeLayout> lay_out(std::vector<SharedNames> names, std::int32_t lanes_log2) const {
    return lay_out_shares(
        plan, blocks,
        {.block_halos = true, .lanes_log2 = lanes_log2, .threads = 64, .names = std::move(names)});
  }
};

}  // namespace

TEST(names_of_all_entries_are_those_that_are_looked_up_one_by_one) {
  for (const int pes : {1, 3}) {
    const Example e(pes, 7);
    const auto names = name_entries(e.plan, e.blocks);
    const auto layouts = e.lay_out({}, 0);
    for (std::size_t pe = 0; pe < layouts.size(); ++pe) {
      const LocalSystem<double>& local = e.plan.local[pe];
      CHECK_EQ(names[pe]->size(), local.col.size());
      for (const ShareLayout& share : layouts[pe].shares) {
        const BlockColumns name = layouts[pe].columns_of(share);
        for (auto k = local.row_ptr[at(share.plan.boundary.begin)];
             k < local.row_ptr[at(share.plan.interior.end)]; ++k)
          CHECK_EQ((*names[pe])[at(k)], name(local.col[at(k)]));
      }
    }
  }
}

TEST(layouts_and_bytes_are_the_same_with_names_and_without) {
  const Example e(2, 5);
  for (const std::int32_t lanes_log2 : {0, 2}) {
    const auto with = e.lay_out(name_entries(e.plan, e.blocks), lanes_log2);
    const auto without = e.lay_out({}, lanes_log2);
    for (std::size_t pe = 0; pe < with.size(); ++pe) {
      CHECK_EQ(with[pe].units, without[pe].units);
      std::vector<std::byte> filled[2];
      for (const auto* layouts : {&with, &without})
        for (const ShareLayout& share : (*layouts)[pe].shares) {
          BlockColumns columns;
          std::vector<std::byte> bytes(at(share.shape.units * kSliceUnit));
          fill_warp_slices(source_of(e.plan.local[pe], (*layouts)[pe], share, columns), share.shape,
                           0, share.shape.slice.size(), bytes.data());
          auto& all = filled[layouts == &with ? 0 : 1];
          all.insert(all.end(), bytes.begin(), bytes.end());
        }
      CHECK(filled[0] == filled[1]);
    }
  }
}
