// Vectors brought nearer before loops over rows read them, where the engine can (FetchingPort).
//
// Each thread prefetches what it reads itself, kAhead of the loop's rounds before: loops are too
// short on loads to keep far memory busy by themselves. (One thread that did it for the block was
// the one that all waited for: 2400 cycles a round of 512 rows.)
#pragma once

#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

inline constexpr std::int32_t kAhead = 4;

// The entry of a vector at row i of the PE; of a private one, at i - shift of my block's part.
template <FetchingPort P, class T>
CPUFREE_KERNEL_FN void prefetch_entry(P& port, const Private<T>& v, std::int32_t i,
                                      std::int32_t shift) {
  if (v.data != nullptr) port.fetch_ahead(v.data + (i - shift));
}
template <FetchingPort P, class T>
CPUFREE_KERNEL_FN void prefetch_entry(P& port, const Ghosted<T>& v, std::int32_t i, std::int32_t) {
  if (v.own == nullptr) port.fetch_ahead(v.data + (i - v.first));
}

// What my thread reads in the first rounds of a loop over rows [begin, end).
template <FetchingPort P, class... V>
CPUFREE_KERNEL_FN void prefetch_first_rounds(P& port, std::int32_t begin, std::int32_t end,
                                             std::int32_t shift, const V&... read) {
  std::int32_t i = begin + port.lane();
  CPUFREE_ONE_COPY
  for (std::int32_t k = 0; k < kAhead && i < end; ++k, i += port.lanes())
    (prefetch_entry(port, read, i, shift), ...);
}

// While my thread is at `row`: what it reads kAhead rounds later.
template <FetchingPort P, class... V>
CPUFREE_KERNEL_FN void prefetch_later_round(P& port, std::int32_t row, std::int32_t end,
                                            std::int32_t shift, const V&... read) {
  const std::int32_t i = row + kAhead * port.lanes();
  if (i < end) (prefetch_entry(port, read, i, shift), ...);
}

}  // namespace cpufree
