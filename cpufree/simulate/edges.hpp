// The edges of a graph, by the operation at one of their ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/simulate/graph.hpp"

namespace cpufree::simulate {

struct End {
  std::int32_t operation;  // at the other end
  std::uint8_t edge;
};

class Edges {
 public:
  // Of `n` operations; `here` and `there` are the two ends of each edge.
  Edges(std::int64_t n, std::span<const std::int32_t> here, std::span<const std::int32_t> there,
        std::span<const std::uint8_t> edge)
      : first_(static_cast<std::size_t>(n) + 1), ends_(here.size()) {
    for (const std::int32_t i : here) ++first_[static_cast<std::size_t>(i) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t e = 0; e < here.size(); ++e)
      ends_[next[static_cast<std::size_t>(here[e])]++] = {there[e], edge[e]};
  }

  std::span<const End> of(std::int32_t operation) const {
    const auto i = static_cast<std::size_t>(operation);
    return std::span(ends_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<End> ends_;
};

}  // namespace cpufree::simulate
