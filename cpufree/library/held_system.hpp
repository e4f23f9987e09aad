// What a handle of the C interface holds: a System, and what updates of it need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpufree/base/digest.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

// A matrix on its PEs, checked, at the scale at which it is solved. Methods throw what System's do.
template <class T>
class HeldSystem {
 public:
  // `part` and `order`: as for make_system. `check`: whether values that conjugate gradients cannot
  // have are refused; the pattern always is.
  HeldSystem(const CsrView<T>& matrix, std::span<const std::int32_t> part,
             std::span<const std::int32_t> order, SystemSpec spec, bool check);

  // New values for the same pattern. `fresh`: levels of multigrid get new aggregates.
  void update(const CsrView<T>& matrix, bool fresh);
  SolveResult solve(VectorView<const T> b, VectorView<const T> x0, VectorView<T> x,
                    const SolveSpec& spec, const Progress& progress);

  std::int32_t rows() const { return rows_; }
  const PlanReport& plan() const;
  const SystemSpec& spec() const { return spec_; }

 private:
  void check_pattern(const CsrView<T>& matrix) const;
  // Calls f with the matrix at the scale of solves, and takes note of that scale.
  template <class F>
  auto at_scale(const CsrView<T>& matrix, F&& f);
  System<T>& system() const;
  bool scale_solution(std::span<T> x) const;

  std::int32_t rows_ = 0;
  std::int64_t nonzeros_ = 0;
  Digest row_ptr_{}, col_{};
  std::vector<std::int32_t> part_, order_;
  SystemSpec spec_;
  bool check_ = true;
  int exponent_ = 0;                   // what is solved with is the matrix divided by 2 to this
  std::unique_ptr<System<T>> system_;  // none: an update has failed
};

}  // namespace cpufree
