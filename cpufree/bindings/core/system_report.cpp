#include "cpufree/bindings/core/system_report.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "cpufree/bindings/core/matrix.hpp"
#include "cpufree/bindings/numpy.hpp"
#include "cpufree/bindings/trace.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace nb = nanobind;

namespace cpufree {

namespace {

nb::object dict_of(const std::optional<Split>& split) {
  if (!split) return nb::none();
  nb::dict d;
  const auto add = [&](const char* name, Phase phase) {
    d[name] = split->seconds[static_cast<std::size_t>(phase)];
  };
  add("spmv", Phase::spmv);
  add("vector", Phase::vector);
  add("halo_wait", Phase::halo_wait);
  add("reduction_wait", Phase::reduction_wait);
  return d;
}

nb::dict dict_of(const LevelReport& level) {
  nb::dict d;
  d["rows"] = level.rows;
  d["nnz"] = level.nonzeros;
  d["transfer_nnz"] = level.transfer_nonzeros;
  d["inverted"] = level.inverted;
  d["bytes"] = level.bytes;
  return d;
}

nb::dict dict_of(const Laps& laps) {
  nb::dict seconds;
  for (const auto& [name, passed] : laps) {
    const char* const key = name.c_str();
    const double before = seconds.contains(key) ? nb::cast<double>(seconds[key]) : 0.0;
    seconds[key] = before + passed;  // a phase may come in parts
  }
  return seconds;
}

}  // namespace

nb::dict dict_of(SolveResult result, const nb::object& x, const PlanReport& plan) {
  const Outcome& o = result.outcome;
  nb::dict d;
  d["x"] = x;
  d["reason"] = reason_name(o.reason);
  d["dependent"] = o.dependent;
  d["iterations"] = o.iterations;
  d["residual"] = o.residual;
  d["true_residual"] = o.true_residual;
  d["weighted_residual"] = o.weighted_residual;
  d["bnorm"] = o.bnorm;
  d["history"] = to_numpy(std::move(result.history));
  d["history_stride"] = o.history_stride;
  d["replacements"] = o.replacements;
  d["handed_over_at"] = o.handed_over_at;
  d["lambda_max"] = o.lambda_max;
  d["seconds"] = result.seconds;
  d["laps"] = dict_of(result.laps);
  d["disturbances"] = result.disturbances;
  d["split"] = dict_of(result.split);
  d["trace"] = dict_of_trace(result.trace ? &*result.trace : nullptr);
  d["reductions"] = o.reductions;
  d["exchanges"] = o.exchanges;
  d["pes"] = plan.pes.size();
  d["blocks"] = plan.blocks;
  return d;
}

nb::dict dict_of(const PlanReport& plan) {
  nb::list rows, nnz, ghosts, boundary, neighbours;
  for (const auto& pe : plan.pes) {
    rows.append(pe.rows);
    nnz.append(pe.nnz);
    ghosts.append(pe.ghosts);
    boundary.append(pe.boundary_rows);
    nb::list mine;
    for (const Neighbour& n : pe.neighbours) mine.append(nb::make_tuple(n.pe, n.sent));
    neighbours.append(mine);
  }
  nb::dict d;
  d["engine"] = plan.engine;
  d["pes"] = plan.pes.size();
  d["nodes"] = plan.nodes;
  d["blocks"] = plan.blocks;
  d["threads"] = plan.threads;
  d["rows"] = rows;
  d["nnz"] = nnz;
  d["ghosts"] = ghosts;
  d["boundary_rows"] = boundary;
  d["neighbours"] = neighbours;
  d["edge_cut"] = plan.edge_cut;
  d["halo_values"] = plan.halo_values;
  d["imbalance"] = plan.imbalance;
  d["matrix_bytes"] = plan.matrix_bytes;
  d["halo"] = plan.halo;
  d["block_halo"] = plan.block_halo;
  d["resident_vectors"] = plan.resident_vectors;
  d["resident_matrix"] = plan.resident_matrix;
  d["single_values"] = plan.single_values;
  d["ring_slots"] = plan.ring_slots;
  d["lanes_per_row"] = plan.lanes_per_row;
  d["shared_bytes"] = plan.shared_bytes;
  d["factors"] = plan.factors;
  d["factor_entries"] = plan.factor_entries;
  d["factor_bytes"] = plan.factor_bytes;
  d["factors_replaced"] = plan.factors_replaced;
  d["factors_left_out"] = plan.factors_left_out;
  nb::list levels;
  for (const LevelReport& level : plan.levels) levels.append(dict_of(level));
  d["levels"] = levels;
  d["coarsest_why"] = plan.coarsest_why;
  d["seconds"] = dict_of(plan.seconds);
  d["diagonal_spread"] = plan.diagonal_spread;
  if (plan.entries) {
    d["entries"] = dict_of(*plan.entries);
    d["mean_distance"] = plan.mean_distance;
  }
  if (!plan.refused.empty()) d["refused"] = plan.refused;
  return d;
}

}  // namespace cpufree
