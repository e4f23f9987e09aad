// Steps of conjugate gradients (Hestenes & Stiefel 1952), as in solvers/cg.hpp: x follows p one
// step later, where p is read anyway.
#pragma once

#include "cpufree/baselines/steps/steps.hpp"

namespace cpufree::baselines {

// x = 0, r = b, p = 0; r . M r, r . r.
template <class T>
struct CgStart {
  const T* b;
  const T* inverse;
  T *x, *r, *p;
  double* preset;  // curvature, and the totals before the first ones

  CPUFREE_KERNEL_FN Nothing begin(bool first) const {
    if (!first) return {};
    preset[0] = 1.0;
    preset[1] = 1.0;
    preset[2] = HUGE_VAL;
    return {};
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, Nothing, double* sums) const {
    x[i] = p[i] = T{0};
    r[i] = b[i];
    sums[0] += static_cast<double>(preconditioned(inverse, b, i)) * b[i];
    sums[1] += static_cast<double>(b[i]) * b[i];
  }
};

// x += alpha p; p = M r + beta p.
template <class T>
struct CgDirection {
  T *x, *r, *p;
  const T* inverse;
  Outbox<T> out;
  Totals<2> now, before;  // r . M r, r . r
  Totals<1> curvature;    // p . A p of the step before
  Control control;

  struct Here {
    T alpha = 0, beta = 0;
    bool move = false;  // x
    bool turn = false;  // p
  };
  CPUFREE_KERNEL_FN const T* sent() const { return p; }

  CPUFREE_KERNEL_FN Here begin(bool speaks) const {
    Here here;
    const double rr = now[1];
    const double rr_before = before[1];
    const bool fresh = rr_before == HUGE_VAL;  // no step has been taken
    const bool broken = !fresh && !(curvature[0] > 0.0);
    const bool over = !fresh && control.judge(rr_before, 1) != Code::running;
    Code code = control.judge(rr);
    if (code == Code::running && broken) code = Code::indefinite_mat;
    if (code == Code::running && !(now[0] > 0.0)) code = Code::indefinite_pc;
    here.move = !fresh && !broken && !over;
    here.turn = code == Code::running;
    if (here.move) here.alpha = static_cast<T>(before[0] / curvature[0]);
    if (here.turn && !fresh) here.beta = static_cast<T>(now[0] / before[0]);
    if (speaks) control.tell(code, rr);
    return here;
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, const Here& here, double*) const {
    T value = p[i];
    if (here.move) x[i] += here.alpha * value;
    if (here.turn) {
      value = preconditioned(inverse, r, i) + here.beta * value;
      p[i] = value;
    }
    out.put(i, value);
  }
};

// r -= alpha s; r . M r, r . r.
template <class T>
struct CgResidual {
  T* r;
  const T *s, *inverse;
  Totals<2> now;
  Totals<1> curvature;
  Control control;

  struct Here {
    T alpha = 0;
    bool step = false;
  };
  CPUFREE_KERNEL_FN Here begin(bool) const {
    Here here;
    here.step = curvature[0] > 0.0 && now[0] > 0.0 && control.judge(now[1]) == Code::running;
    if (here.step) here.alpha = static_cast<T>(now[0] / curvature[0]);
    return here;
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, const Here& here, double* sums) const {
    T value = r[i];
    if (here.step) {
      value -= here.alpha * s[i];
      r[i] = value;
    }
    sums[0] += static_cast<double>(inverse != nullptr ? inverse[i] * value : value) * value;
    sums[1] += static_cast<double>(value) * value;
  }
};

// p . A p.
template <class T>
struct CurvatureSum {
  static constexpr int kSums = 1;
  const T* p;
  CPUFREE_KERNEL_FN void add(std::int32_t i, T s, double* sums) const {
    sums[0] += static_cast<double>(p[i]) * s;
  }
};

}  // namespace cpufree::baselines
