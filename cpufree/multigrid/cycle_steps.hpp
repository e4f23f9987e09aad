// What a cycle does to the rows of a level.
#pragma once

#include "cpufree/multigrid/cycle_args.hpp"

namespace cpufree {

// What happens to a row, and what of it is exchanged. `first` and `turn` begin: they follow no
// product. All others follow r -= A d, d the vector exchanged before.
enum class CycleStep : std::int32_t {
  first,     // x = first r, of x                    the first of two steps of Chebyshev's iteration
  turn,      // -r, and r = 0
  second,    // x += keep d + add r, of what is added
  correct,   // x += d + first r, of first r         the first of two more steps, d = P x
  again,     // x += first r, of what is added       the same where nothing is to be corrected
  last,      // x += keep d + add r, of x
  alone,     // the same, of nothing
  residual,  // r
  down,      // transfers, whose product is with the other level's vector: r of the level below
  up         // P x of it
};

struct RowOfLevel {
  float r, x, d;
};

// The step that begins: what of a row is exchanged.
template <class F>
CPUFREE_KERNEL_FN float begin_row(const CycleLevel<F>& level, CycleStep step, float& r, float& x) {
  const float given = r;
  if (step == CycleStep::first) return x = level.first * given;
  r = 0.0F;
  return -given;
}

// What a step that follows a product does to a row. Without branches: loops over rows vectorise.
struct StepRule {
  float keep = 0.0F, add = 0.0F;  // both 0: x stays
  bool corrects = false, tells_r = false, tells_x = false;

  CPUFREE_KERNEL_FN StepRule() {}
  template <class F>
  CPUFREE_KERNEL_FN StepRule(const CycleLevel<F>& level, CycleStep step)
      : corrects(step == CycleStep::correct),
        tells_r(step == CycleStep::residual),
        tells_x(step == CycleStep::last) {
    const bool first = corrects || step == CycleStep::again;
    if (!first && !tells_r) keep = level.keep;
    if (!tells_r) add = first ? level.first : level.add;
  }
  // r -= ad, and x moves; returns what is exchanged.
  CPUFREE_KERNEL_FN float apply(const RowOfLevel& row, float ad, float& r, float& x) const {
    const float left = row.r - ad;
    const float added = keep * row.d + add * left;
    const float moved = (corrects ? row.x + row.d : row.x) + added;
    r = left;
    x = moved;
    return tells_r ? left : tells_x ? moved : added;
  }
};

}  // namespace cpufree
