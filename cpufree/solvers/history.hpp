// The residual history of a solve.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// Squares of residual norms, one per iteration, in bounded memory: when it is full, every other one
// is dropped and from then on only every other one kept. Used by one thread.
class History {
 public:
  CPUFREE_KERNEL_FN History(double* values, std::int64_t capacity)
      : values_(values), capacity_(capacity) {}
  CPUFREE_KERNEL_FN void add(std::int64_t iteration, double square) {
    if ((iteration & (stride_ - 1)) != 0) return;
    if (count_ == capacity_) {
      for (std::int64_t k = 0; 2 * k < count_; ++k) values_[k] = values_[2 * k];
      count_ = (count_ + 1) / 2;
      stride_ *= 2;
      if ((iteration & (stride_ - 1)) != 0) return;
    }
    values_[count_++] = square;
  }
  CPUFREE_KERNEL_FN std::int64_t count() const { return count_; }
  CPUFREE_KERNEL_FN std::int64_t stride() const { return stride_; }

 private:
  double* values_;
  std::int64_t capacity_;
  std::int64_t count_ = 0;
  std::int64_t stride_ = 1;  // a power of two
};

}  // namespace cpufree
