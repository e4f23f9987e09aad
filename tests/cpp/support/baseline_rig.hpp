// Baselines on a stand-in for GPUs, for tests.
#pragma once

#include <cmath>

#include "cpufree/base/error.hpp"
#include "cpufree/baselines/drivers/solvers.hpp"
#include "cpufree/reference/cg.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "process_threads.hpp"

namespace baseline_rig {

using namespace cpufree;
using namespace testing_matrices;

inline const char* const kSeveral[] = {"peer_copy", "nccl", "nccl_graph", "graph_while",
                                       "nvshmem_on_stream"};
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
  spec.wait_limit = 300.0;
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

// A baseline of which each PE is a process: here, a thread for each call.
template <class T>
class Processes : public Baseline<T> {
 public:
  Processes(const CsrView<T>& matrix, const Part& part, const Part& order, BaselineSpec spec)
      : part_(part), pes_(static_cast<std::size_t>(spec.pes)) {
    spec.nvshmem_id = make_shmem_id(spec.nvshmem_library);
    each_process(pes_.size(), [&](std::size_t pe) {
      BaselineSpec mine = spec;
      mine.rank = static_cast<int>(pe);
      pes_[pe] = make_baseline<T>(matrix, part, order, mine);
    });
  }
  std::int32_t rows() const override { return pes_.front()->rows(); }
  const BaselineFacts& facts() const override { return pes_.front()->facts(); }

  // Every row from the process that has it.
  BaselineResult solve(std::span<const T> b, std::span<T> x, const BaselineSolve& how) override {
    results.assign(pes_.size(), {});
    std::vector<std::vector<T>> found(pes_.size(), std::vector<T>(x.size()));
    each_process(pes_.size(),
                 [&](std::size_t pe) { results[pe] = pes_[pe]->solve(b, found[pe], how); });
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = found[part_.empty() ? 0 : static_cast<std::size_t>(part_[i])][i];
    return results.front();
  }

  std::vector<BaselineResult> results;  // of the last solve, by process

 private:
  Part part_;
  std::vector<std::unique_ptr<Baseline<T>>> pes_;
};

template <class T>
std::unique_ptr<Baseline<T>> baseline_of(const CsrView<T>& matrix, const Part& part,
                                         const Part& order, const BaselineSpec& spec) {
  if (spec.kind == "nvshmem_on_stream" && spec.pes >= 1)
    return std::make_unique<Processes<T>>(matrix, part, order, spec);
  return make_baseline<T>(matrix, part, order, spec);
}

template <class T>
struct Solved {
  BaselineResult result;
  std::vector<T> x;
};

template <class T>
Solved<T> solve(const Matrix<T>& a, const std::vector<T>& b, const BaselineSpec& spec,
                const Part& part, const BaselineSolve& how) {
  const auto baseline = baseline_of<T>(a.view(), part, {}, spec);
  Solved<T> s{{}, std::vector<T>(b.size(), T{-1})};
  s.result = baseline->solve(b, s.x, how);
  return s;
}

}  // namespace baseline_rig
