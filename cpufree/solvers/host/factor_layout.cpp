#include "cpufree/solvers/host/factor_layout.hpp"

#include <string>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/gather.hpp"

namespace cpufree {

template <class T>
double PeFactors<T>::bytes() const {
  double sum = static_cast<double>(scale.size() * sizeof(T));
  for (const auto& blocks : factors)
    for (const SlicedFactor& block : blocks) sum += block.bytes();
  return sum;
}

Factors factors_of(const OwnRows& own, const FactorSpec& spec) {
  if (!spec.given) return approximate_inverse(own, fsai_options(spec.level));
  const multigrid::SparseMatrix& g = *spec.given;
  return given_factor(own, {g.columns, g.row_ptr, g.col, g.val});
}

template <class T>
PeFactors<T> lay_out_factors(const Factors& found, const PrivatePlaces& places,
                             std::int64_t private_rows, int width) {
  PeFactors<T> result;
  for (const SparseFactor& factor : found.factors)
    result.factors.push_back(slice_factor(factor, places, width));
  result.partners = factor_partners(found.factors, places);
  result.scale.assign(at(private_rows), T{1});
  for (std::size_t row = 0; row < found.scale.size(); ++row)
    result.scale[at(places.place[row])] = static_cast<T>(found.scale[row]);
  result.entries = found.entries();
  result.replaced = found.replaced;
  result.left_out = found.left_out;
  return result;
}

template <class T>
void report_factors(PlanReport& report, const FactorSpec& spec, Team* team,
                    const std::vector<const PeFactors<T>*>& pes) {
  double entries = 0.0, bytes = 0.0, replaced = 0.0, left_out = 0.0;
  for (const PeFactors<T>* pe : pes) {
    entries += static_cast<double>(pe->entries);
    bytes += pe->bytes();
    replaced += static_cast<double>(pe->replaced);
    left_out += static_cast<double>(pe->left_out);
  }
  if (team != nullptr) {
    entries = sum(*team, "entries of factors", entries);
    bytes = sum(*team, "bytes of factors", bytes);
    replaced = sum(*team, "rows without a factor", replaced);
    left_out = sum(*team, "entries of factors that are left out", left_out);
  }
  report.factors = preconditioner_name(spec.kind);
  report.factor_entries = static_cast<std::int64_t>(entries);
  report.factor_bytes = bytes;
  report.factors_replaced = static_cast<std::int64_t>(replaced);
  report.factors_left_out = static_cast<std::int64_t>(left_out);
}

void require_factors(const SolveSpec& solve, const FactorSpec& factors) {
  if (!set_up_with_matrix(solve.preconditioner)) return;
  const std::string name = preconditioner_name(solve.preconditioner);
  require(solve.preconditioner == factors.kind,
          "the preconditioner " + name + " is set up along with the matrix: name it there, as in " +
              "Solver(A, pc='" + name + "')");
}

template struct PeFactors<float>;
template struct PeFactors<double>;
template PeFactors<float> lay_out_factors(const Factors&, const PrivatePlaces&, std::int64_t, int);
template PeFactors<double> lay_out_factors(const Factors&, const PrivatePlaces&, std::int64_t, int);
template void report_factors(PlanReport&, const FactorSpec&, Team*,
                             const std::vector<const PeFactors<float>*>&);
template void report_factors(PlanReport&, const FactorSpec&, Team*,
                             const std::vector<const PeFactors<double>*>&);

}  // namespace cpufree
