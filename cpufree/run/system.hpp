// A linear system laid out on the PEs of an engine: set up once, solved often.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "cpufree/problem/csr.hpp"
#include "cpufree/run/result.hpp"
#include "cpufree/run/spec.hpp"

namespace cpufree {

// Called on the host thread while kernels run, with the iteration reached and its residual norm.
// Returns false to ask for a stop.
using Progress = std::function<bool(std::int64_t iteration, double residual)>;

template <class T>
class System {
 public:
  virtual ~System() = default;
  virtual std::int32_t rows() const = 0;
  virtual const PlanReport& plan() const = 0;
  // Solves A x = b. `x0` is empty or holds a guess. Throws InvalidInput, WaitTimeout.
  virtual SolveResult<T> solve(std::span<const T> b, std::span<const T> x0, const SolveSpec& spec,
                               const Progress& progress) = 0;
};

// Lays the matrix out. `part` (owner of each row; empty: contiguous parts of equal weight) and
// `order` (rows in the sequence in which PEs number them; empty: natural) as in make_halo_plan.
template <class T>
std::unique_ptr<System<T>> make_system(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                                       std::span<const std::int32_t> order, const SystemSpec& spec);

}  // namespace cpufree
