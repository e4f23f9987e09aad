// A new order of a PE's interior rows, which no other PE knows of.
#pragma once

#include <cstdint>
#include <span>

#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// Renumbers the interior rows of a PE: row `order[k]` becomes row k. Boundary rows and ghosts stay
// where they are. The entries of a row keep their sequence, and so the row its sum.
template <class T>
void reorder_interior(LocalSystem<T>& local, std::span<const std::int32_t> order);

}  // namespace cpufree
