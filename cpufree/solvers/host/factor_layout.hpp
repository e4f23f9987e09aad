// The factors of a preconditioner as the blocks of a PE have them, on any engine.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/formats/factor_slices_build.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

template <class T>
struct PeFactors {
  std::vector<std::vector<SlicedFactor>> factors;   // in the order of use; of each block
  std::vector<std::vector<std::int32_t>> partners;  // of each block: FactorShare::board
  std::vector<T> scale;                             // in the order of the private vectors
  std::int64_t entries = 0;
  std::int64_t replaced = 0, left_out = 0;  // as of Factors

  double bytes() const;
};

// Those of a PE: as they are given, or made of its rows by the host.
Factors factors_of(const OwnRows& own, const FactorSpec& spec);

// `private_rows`: the length of the PE's private vectors. `width`: of slices.
template <class T>
PeFactors<T> lay_out_factors(const Factors& found, const PrivatePlaces& places,
                             std::int64_t private_rows, int width);

// Writes what there is to know of the factors of all PEs into a report. Every member of a team
// calls it.
template <class T>
void report_factors(PlanReport& report, const FactorSpec& spec, Team* team,
                    const std::vector<const PeFactors<T>*>& pes);

// Throws InvalidInput where a solve asks for factors that have not been set up.
void require_factors(const SolveSpec& solve, const FactorSpec& factors);

}  // namespace cpufree
