// Factors of a preconditioner for one PE of a rig (kernel_rig.hpp).
#pragma once

#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/factors/factors.hpp"
#include "cpufree/solvers/host/factor_layout.hpp"

namespace testing_rig {

using namespace cpufree;

class RigFactors {
 public:
  // `order`: rows by private number. `flags`: an arrival board of their own.
  RigFactors(const FactorSpec& spec, const LocalSystem<double>& local,
             const std::vector<BlockPlan>& blocks, const std::vector<std::size_t>& order,
             const std::vector<std::int64_t>& first_private, int width, Flag* flags) {
    PrivatePlaces places;
    places.place.resize(order.size());
    for (std::size_t j = 0; j < order.size(); ++j)
      places.place[order[j]] = static_cast<std::int32_t>(j);
    places.first = first_private;
    for (const BlockPlan& plan : blocks) {
      auto& rows = places.rows.emplace_back();
      for (const RowRange range : {plan.boundary, plan.interior})
        for (std::int32_t i = range.begin; i < range.end; ++i) rows.push_back(i);
    }
    const auto found = approximate_inverse(own_rows_of(local), fsai_options(spec.level));
    made_ = lay_out_factors<double>(found, places, local.rows(), width);
    for (auto& operand : operand_) operand.resize(order.size() + 1);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      FactorShare<double> share;
      share.count = static_cast<std::int32_t>(made_.factors.size());
      for (std::size_t f = 0; f < made_.factors.size(); ++f)
        share.factor[f] = made_.factors[f][b].view();
      share.scale = made_.scale.data() + first_private[b];
      for (std::size_t o = 0; o < 2; ++o) share.operand[o] = operand_[o].data();
      share.board.flags = flags;
      share.board.await_local = made_.partners[b].data();
      share.board.await_local_count = static_cast<std::int32_t>(made_.partners[b].size());
      shares_.push_back(share);
    }
  }
  RigFactors(RigFactors&&) = default;

  const FactorShare<double>* shares() const { return shares_.data(); }
  // For tests of what becomes of a block that waits for too few.
  void forget_partners() {
    for (auto& share : shares_) share.board.await_local_count = 0;
  }

 private:
  PeFactors<double> made_;
  std::vector<double> operand_[2];
  std::vector<FactorShare<double>> shares_;
};

}  // namespace testing_rig
