// Many small systems, each solved by one core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

// One of them; `x0` is empty or holds a guess.
template <class T>
struct OneOfMany {
  CsrView<T> matrix;
  std::span<const T> b, x0;
  std::span<T> x;
};

struct SolvedOne {
  Outcome outcome;
  bool refused = false;  // its matrix cannot be solved (EntryReport), or `error` says more
  std::string error;
  double asymmetry = 0.0;
};

// Looks at the entries of all matrices, up to `tolerance` of asymmetry: which are refused.
template <class T>
void check_many(const std::vector<OneOfMany<T>>& systems, double tolerance,
                std::vector<SolvedOne>& solved);

// Solves those that are not refused on the cores of this process, with spec.time_limit for all
// together. A negative spec.maxiter stands for iterations_without_limit of each. What is wrong with
// one of them, as what ends one, is said of that one; the others are solved. Systems that follow
// one with the same pattern on the same core take over its layout. `progress` is called on the
// calling thread, with how many have ended. Throws OutOfMemory, and what `progress` throws.
template <class T>
void solve_many(const std::vector<OneOfMany<T>>& systems, const SolveSpec& spec,
                const Progress& progress, std::vector<SolvedOne>& solved);

template <class T>
bool same_pattern(const CsrView<T>& a, const CsrView<T>& b) {
  const auto same = [](const auto& one, const auto& other) {
    return one.size() == other.size() &&
           (one.data() == other.data() || std::ranges::equal(one, other));
  };
  return a.n == b.n && same(a.row_ptr, b.row_ptr) && same(a.col, b.col);
}

}  // namespace cpufree
