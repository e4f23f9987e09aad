// A NodeTable in the memory of a GPU.
#pragma once

#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/device/node_table.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree {

class NodeArrays {
 public:
  NodeArrays() = default;
  NodeArrays(int device, const NodeTable& nodes) {
    const Nodes all = nodes.view();
    const auto pes = nodes.of_pe().size();
    const auto upload = [&](const std::int32_t* list, std::size_t count) {
      return gpu::DeviceArray<std::int32_t>(device, std::vector<std::int32_t>(list, list + count));
    };
    of_pe_ = upload(all.of_pe, pes);
    place_ = upload(all.place, pes);
    first_ = upload(all.first, at(all.count) + 1);
    pes_ = upload(all.pes, pes);
  }
  Nodes view() const {
    const auto count = static_cast<std::int32_t>(first_.size()) - 1;
    return {count, of_pe_.data(), place_.data(), first_.data(), pes_.data()};
  }

 private:
  gpu::DeviceArray<std::int32_t> of_pe_, place_, first_, pes_;
};

}  // namespace cpufree
