// Steps of predict-and-recompute CG (Chen & Carson 2020, PR-CG), as in solvers/prcg.hpp.
#pragma once

#include "cpufree/baselines/steps/steps.hpp"

namespace cpufree::baselines {

// x = 0, r = b, p = M r.
template <class T>
struct PrcgStart {
  const T* b;
  const T* inverse;
  T *x, *r, *p;
  Outbox<T> out;

  CPUFREE_KERNEL_FN Nothing begin(bool) const { return {}; }
  CPUFREE_KERNEL_FN const T* sent() const { return p; }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, Nothing, double*) const {
    x[i] = T{0};
    r[i] = b[i];
    const T value = preconditioned(inverse, b, i);
    p[i] = value;
    out.put(i, value);
  }
};

// The sums of an iteration; s = A p.
template <class T>
struct PrcgSums {
  static constexpr int kSums = 5;
  enum { kMu, kDelta, kGamma, kNu, kSquare };
  const T *p, *r, *inverse;
  CPUFREE_KERNEL_FN void add(std::int32_t i, T s, double* sums) const {
    const T scale = inverse != nullptr ? inverse[i] : T{1};
    const double mr = scale * r[i];
    const double ms = scale * s;
    sums[kMu] += static_cast<double>(p[i]) * s;
    sums[kDelta] += mr * s;
    sums[kGamma] += static_cast<double>(s) * ms;
    sums[kNu] += mr * r[i];
    sums[kSquare] += static_cast<double>(r[i]) * r[i];
  }
};

// x += alpha p; r -= alpha s; p = M r + beta p.
template <class T>
struct PrcgUpdate {
  T *x, *r, *p;
  const T *s, *inverse;
  Outbox<T> out;
  Totals<5> now;
  Control control;

  struct Here {
    T alpha = 0, beta = 0;
    bool step = false;
  };
  CPUFREE_KERNEL_FN const T* sent() const { return p; }

  CPUFREE_KERNEL_FN Here begin(bool speaks) const {
    using S = PrcgSums<T>;
    const double mu = now[S::kMu];
    const double nu = now[S::kNu];
    const double alpha = nu / mu;
    Code code = control.judge(now[S::kSquare]);
    if (code == Code::running && !(mu > 0.0)) code = Code::indefinite_mat;
    if (code == Code::running && !(nu > 0.0)) code = Code::indefinite_pc;
    if (code == Code::running && !(alpha - alpha == 0.0)) code = Code::broken_down;
    const double predicted = nu - 2.0 * alpha * now[S::kDelta] + alpha * alpha * now[S::kGamma];
    Here here;
    here.step = code == Code::running;
    here.alpha = static_cast<T>(alpha);
    here.beta = static_cast<T>(predicted > 0.0 ? predicted / nu : 0.0);
    if (speaks) control.tell(code, now[S::kSquare]);
    return here;
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, const Here& here, double*) const {
    T value = p[i];
    if (here.step) {
      x[i] += here.alpha * value;
      r[i] -= here.alpha * s[i];
      value = preconditioned(inverse, r, i) + here.beta * value;
      p[i] = value;
    }
    out.put(i, value);
  }
};

}  // namespace cpufree::baselines
