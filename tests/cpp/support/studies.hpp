// What tests of studies share.
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <vector>

#include "cpufree/device/study.hpp"

namespace studies {

inline double whole(const cpufree::Split& split) {
  return std::accumulate(std::begin(split.seconds), std::end(split.seconds), 0.0);
}

// A study is another instantiation, in which compilers may fuse other multiplications and
// additions.
inline bool alike(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::abs(a[i] - b[i]);
    size += std::abs(b[i]);
  }
  return a.size() == b.size() && difference <= 1e-11 * size;
}

}  // namespace studies
