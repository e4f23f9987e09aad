// Baselines on a stand-in for GPUs, for tests.
#pragma once

#include <cmath>

#include "cpufree/base/error.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/run/baseline.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"

namespace baseline_rig {

using namespace cpufree;
using namespace testing_matrices;

inline const char* const kSeveral[] = {"peer_copy", "nccl", "nccl_graph", "graph_while"};
inline constexpr Method kMethods[] = {Method::cg, Method::prcg, Method::pipecg};
using Part = std::vector<std::int32_t>;

inline void on_machine(bool deferred, unsigned seed = 1, bool peers = true) {
  host_gpu::configure({4, peers, deferred, seed, false});
}

inline BaselineSpec spec_of(const std::string& kind, int pes) {
  BaselineSpec spec;
  spec.kind = kind;
  spec.pes = pes;
  spec.spmv = "warp_slices";
  spec.wait_limit = 20.0;
  return spec;
}

inline BaselineSolve solve_of(Method method, double rtol = 1e-9) {
  BaselineSolve how;
  how.method = method;
  how.rtol = rtol;
  how.max_iterations = 1000;
  return how;
}

inline double norm(const reference::Vec& v) { return std::sqrt(reference::dot(v, v)); }

template <class T>
double true_residual(const Matrix<T>& a, const std::vector<T>& b, const std::vector<T>& x) {
  const reference::Vec rhs(b.begin(), b.end());
  const auto ax = reference::multiply(a.view(), reference::Vec(x.begin(), x.end()));
  return norm(reference::axpy(rhs, -1.0, ax)) / norm(rhs);
}

template <class T>
struct Solved {
  BaselineResult result;
  std::vector<T> x;
};

template <class T>
Solved<T> solve(const Matrix<T>& a, const std::vector<T>& b, const BaselineSpec& spec,
                const Part& part, const BaselineSolve& how) {
  const auto baseline = make_baseline<T>(a.view(), part, {}, spec);
  Solved<T> s{{}, std::vector<T>(b.size(), T{-1})};
  s.result = baseline->solve(b, s.x, how);
  return s;
}

}  // namespace baseline_rig
