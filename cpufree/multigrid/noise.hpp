// Numbers without a pattern that depend on a row alone, the same on all machines.
#pragma once

#include <cstdint>

namespace cpufree::multigrid {

// splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
constexpr std::uint64_t hash(std::int32_t row) {
  auto h = static_cast<std::uint64_t>(row) + 0x9e3779b97f4a7c15ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

// In [-1, 1).
constexpr double noise(std::int32_t row) {
  return static_cast<double>(hash(row) >> 11) * 0x1p-52 - 1.0;
}

}  // namespace cpufree::multigrid
