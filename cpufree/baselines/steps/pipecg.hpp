// Steps of pipelined CG (Ghysels & Vanroose 2014), as in solvers/pipelined_cg.hpp, without residual
// replacement: what PETSc and aCG do.
#pragma once

#include "cpufree/baselines/steps/steps.hpp"

namespace cpufree::baselines {

enum PipeSum { kPipeGamma, kPipeDelta, kPipeSquare };  // r . M r, w . M r, r . r

// x = 0, r = b, z = s = p = 0, u = M r for A u; b . b.
template <class T>
struct PipeStart {
  const T* b;
  const T* inverse;
  T *x, *r, *z, *s, *p, *u;
  Outbox<T> out;
  double* preset;  // totals before the first ones

  CPUFREE_KERNEL_FN const T* sent() const { return u; }
  CPUFREE_KERNEL_FN Nothing begin(bool first) const {
    if (first) preset[kPipeGamma] = HUGE_VAL;
    return {};
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, Nothing, double* sums) const {
    x[i] = z[i] = s[i] = p[i] = T{0};
    r[i] = b[i];
    const T value = preconditioned(inverse, b, i);
    u[i] = value;
    out.put(i, value);
    sums[0] += static_cast<double>(b[i]) * b[i];
  }
};

// All vectors of a step, m = M w for the next product, and the sums.
template <class T>
struct PipeUpdate {
  T *x, *r, *w, *z, *s, *p, *m;
  const T *n, *inverse;
  Outbox<T> out;
  Totals<3> now, before;
  const double* alpha_before;
  double* alpha_now;
  Control control;
  bool starts = false;  // there are no totals yet: only m and the sums

  struct Here {
    T alpha = 0, beta = 0;
    bool step = false;
  };
  CPUFREE_KERNEL_FN const T* sent() const { return m; }

  CPUFREE_KERNEL_FN Here begin(bool speaks) const {
    Here here;
    if (starts) return here;
    const double gamma = now[kPipeGamma];
    const double delta = now[kPipeDelta];
    const bool first = before[kPipeGamma] == HUGE_VAL;
    const double beta = first ? 0.0 : gamma / before[kPipeGamma];
    // A step that was not taken left 0: the next one is none either.
    const double curvature = first                  ? delta
                             : *alpha_before == 0.0 ? 0.0
                                                    : delta - beta * gamma / *alpha_before;
    const double alpha = gamma / curvature;
    Code code = control.judge(now[kPipeSquare]);
    if (code == Code::running && first && !(gamma > 0.0)) code = Code::indefinite_pc;
    if (code == Code::running && first && !(delta > 0.0)) code = Code::indefinite_mat;
    if (code == Code::running && !(gamma > 0.0 && curvature > 0.0 && alpha - alpha == 0.0))
      code = Code::broken_down;
    here.step = code == Code::running;
    if (here.step) {
      here.alpha = static_cast<T>(alpha);
      here.beta = static_cast<T>(beta);
    }
    if (speaks) {
      *alpha_now = here.step ? alpha : 0.0;
      control.tell(code, now[kPipeSquare]);
    }
    return here;
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, const Here& here, double* sums) const {
    const T scale = inverse != nullptr ? inverse[i] : T{1};
    T residual = r[i];
    T image = w[i];
    if (here.step) {
      const T zi = n[i] + here.beta * z[i];
      const T si = image + here.beta * s[i];
      const T pi = scale * residual + here.beta * p[i];
      z[i] = zi;
      s[i] = si;
      p[i] = pi;
      x[i] += here.alpha * pi;
      residual -= here.alpha * si;
      image -= here.alpha * zi;
      r[i] = residual;
      w[i] = image;
    }
    m[i] = scale * image;
    out.put(i, scale * image);
    const double u = scale * residual;
    sums[kPipeGamma] += u * residual;
    sums[kPipeDelta] += u * image;
    sums[kPipeSquare] += static_cast<double>(residual) * residual;
  }
};

}  // namespace cpufree::baselines
