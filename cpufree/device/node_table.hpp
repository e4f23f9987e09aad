// The host's side of Nodes: which PE is in which node, from any way of telling them apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/device/nodes.hpp"

namespace cpufree {

class NodeTable {
 public:
  // All PEs are one node.
  explicit NodeTable(int pes = 1)
      : NodeTable(std::span<const std::int32_t>(std::vector<std::int32_t>(at(pes), 0))) {}
  // PEs of the same name are a node.
  explicit NodeTable(std::span<const std::int32_t> names) : of_pe_(names.size(), -1) {
    for (std::size_t pe = 0; pe < names.size(); ++pe) {
      if (of_pe_[pe] >= 0) continue;
      first_.push_back(static_cast<std::int32_t>(pes_.size()));
      for (std::size_t other = pe; other < names.size(); ++other) {
        if (names[other] != names[pe]) continue;
        of_pe_[other] = static_cast<std::int32_t>(first_.size()) - 1;
        pes_.push_back(static_cast<std::int32_t>(other));
      }
    }
    first_.push_back(static_cast<std::int32_t>(pes_.size()));
    place_.resize(names.size());
    for (std::size_t k = 0; k < pes_.size(); ++k)
      place_[at(pes_[k])] = static_cast<std::int32_t>(k) - first_[at(of_pe_[at(pes_[k])])];
  }
  // Every `size` PEs in a row are a node.
  static NodeTable of_size(int pes, int size) {
    std::vector<std::int32_t> names(at(pes));
    for (int pe = 0; pe < pes; ++pe) names[at(pe)] = pe / size;
    return NodeTable(names);
  }

  int count() const { return static_cast<int>(first_.size()) - 1; }
  int largest() const {
    int most = 0;
    for (int node = 0; node < count(); ++node) most = std::max(most, view().size(node));
    return most;
  }
  const std::vector<std::int32_t>& of_pe() const { return of_pe_; }
  // Lives as long as the table.
  Nodes view() const { return {count(), of_pe_.data(), place_.data(), first_.data(), pes_.data()}; }

 private:
  std::vector<std::int32_t> of_pe_, place_, first_, pes_;
};

}  // namespace cpufree
