// How much an iteration changes the values.
#pragma once

#include "cpufree/device/block.hpp"

namespace cpufree {

// How much an iteration has changed the points of one thread.
template <Port P>
struct Change {
  double tolerance;
  Lanes<P> above;    // points that changed by more than the tolerance, or are no numbers
  Lanes<P> squares;  // of the changes
  Lanes<P> largest;

  CPUFREE_KERNEL_FN void add(int lane, double before, double after) {
    const double change = before < after ? after - before : before - after;
    above[lane] += change <= tolerance ? 0.0 : 1.0;
    squares[lane] += change * change;
    largest[lane] = change > largest[lane] ? change : largest[lane];
  }
  // NaN where some point is none.
  CPUFREE_KERNEL_FN double most() const {
    double most = 0.0;
    for (int l = 0; l < P::width; ++l) most = largest.value[l] > most ? largest.value[l] : most;
    const double sum = squares.sum();
    return sum == sum ? most : sum;
  }
};

}  // namespace cpufree
