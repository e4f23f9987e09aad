// Who waits for whom in a program that cannot end.
#pragma once

#include <cstdint>
#include <span>

#include "cpufree/simulate/graph.hpp"

namespace cpufree::simulate {

// A chain of waits from the first operation that has not begun. `missing`: by round and operation,
// how many of those that it waits for have not ended; somewhere it is not 0.
WaitChain find_waits(const Graph& graph, std::span<const std::int32_t> missing);

}  // namespace cpufree::simulate
