// A linear system laid out on the PEs of an engine: set up once, solved often.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpufree/distributed/slab_plan.hpp"
#include "cpufree/launch/engine.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// A vector of the caller's, in host memory or on a GPU.
template <class T>
struct VectorView {
  static constexpr int kHost = -1;
  T* data = nullptr;
  std::size_t size = 0;
  int device = kHost;

  bool on_host() const { return device == kHost; }
  std::span<T> span() const { return {data, size}; }
};

// A whole matrix in compressed rows where the caller has it, in host memory or on a GPU, which the
// GPU engine takes (GpuEngineTable).
template <class T>
struct GivenCsr {
  std::int32_t n = 0;
  const void* row_ptr = nullptr;  // n + 1, in 64 bits if `wide`, else in 32
  bool wide = true;
  const std::int32_t* col = nullptr;
  const T* val = nullptr;
  int device = VectorView<T>::kHost;

  static GivenCsr of(const CsrView<T>& a) {
    return {a.n, a.row_ptr.data(), true, a.col.data(), a.val.data()};
  }
};

// The vectors of several right-hand sides; x0 is empty, or holds a guess for each.
template <class T>
struct ColumnViews {
  std::vector<VectorView<const T>> b, x0;
  std::vector<VectorView<T>> out;
};

// A solution in host memory.
template <class T>
struct Solution : SolveResult {
  std::vector<T> x;
};

template <class T>
class System {
 public:
  virtual ~System() = default;
  virtual std::int32_t rows() const = 0;  // entries of its vectors
  virtual const PlanReport& plan() const = 0;

  // Solves A x = b and writes x to `out`. `x0` is empty or holds a guess. Vectors on a GPU are for
  // the engine cuda_p2p alone. Throws InvalidInput, Unsupported, WaitTimeout, EngineError.
  virtual SolveResult solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> out,
                            const SolveSpec& spec, const Progress& progress) = 0;

  // Solves A x = b by cg for 2, 4 or 8 right-hand sides together, in one kernel that reads A once
  // for all of them. Results are those of each, but for the times and the counts of reductions and
  // exchanges, which are of the kernel. Throws as `solve` does, OutOfMemory, and Unsupported where
  // `refuses_columns` says why.
  virtual std::vector<SolveResult> solve_columns(const ColumnViews<T>& vectors,
                                                 const SolveSpec& spec,
                                                 const Progress& progress) = 0;
  // Why this engine does not solve several right-hand sides together; "": it does.
  virtual std::string refuses_columns() const = 0;

  // Takes the values of another matrix of the same pattern, so that solves have the bits of those
  // of a system that is made of it. False: they do not fit into the layout as it is, and nothing
  // has changed. Throws InvalidInput, SystemBusy, OutOfMemory, EngineError; unless usable() says so
  // afterwards, the old values are gone.
  virtual bool update(const CsrView<T>& matrix) = 0;
  virtual bool usable() const = 0;

  // The same solve for vectors in host memory.
  Solution<T> solve(std::span<const T> b, std::span<const T> x0, const SolveSpec& spec,
                    const Progress& progress) {
    Solution<T> solution;
    solution.x.resize(static_cast<std::size_t>(rows()));
    static_cast<SolveResult&>(solution) =
        solve(VectorView<const T>{b.data(), b.size()}, VectorView<const T>{x0.data(), x0.size()},
              VectorView<T>{solution.x.data(), solution.x.size()}, spec, progress);
    return solution;
  }
};

// Lays the matrix out. `part` (owner of each row; empty: contiguous parts of equal weight) and
// `order` (rows in the sequence in which PEs number them; empty: natural) as in make_halo_plan.
// Where spec.inspect asks GPUs to look at the entries and the host is to do it, the system is not
// usable and PlanReport::refused says why.
// Throws InvalidInput, Unsupported (an engine that is not here), OutOfMemory, EngineError.
template <class T>
std::unique_ptr<System<T>> make_system(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                                       std::span<const std::int32_t> order, const SystemSpec& spec);

// The same from the rows of this rank alone, planned together with the others of spec.team (see
// plan_slab). Vectors of this system are those of its rows: rows() counts them, and each rank gets
// its own part of x.
template <class T>
std::unique_ptr<System<T>> make_system(SlabPlan<T> slab, const SystemSpec& spec);

}  // namespace cpufree
