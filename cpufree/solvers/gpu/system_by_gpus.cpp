// The steps of GpuSystem in which GPUs lay the matrix out, and lay new values out.
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/multigrid/gpu/hierarchy.hpp"
#include "cpufree/solvers/gpu/layout/inverse.hpp"
#include "cpufree/solvers/gpu/system.hpp"
#include "cpufree/solvers/host/factor_layout.hpp"

namespace cpufree {

template <class T>
bool GpuSystem<T>::set_up_by_gpus(const GivenCsr<T>& matrix, std::vector<std::int64_t> cuts) {
  const gpu_p2p::DeviceLocks locks(place_.devices);
  gpu_p2p::connect(place_.devices);
  if (matrix.device != VectorView<T>::kHost && !have_room(place_, matrix, cuts))
    return refuse("the GPU has no room to lay this matrix out"), true;
  cuts_ = std::move(cuts);
  SentRows<T> sent = send_to_gpus(place_, matrix, cuts_, place_.spec.inspect, timer_);
  if (const FoundInRows& found = sent.found; !found.flaw.empty()) {
    // Of a matrix on a GPU, and of one that was to be looked at, the host says more.
    require(matrix.device != VectorView<T>::kHost || place_.spec.inspect, found.flaw);
    return refuse(found.flaw), true;
  }
  const bool levels = place_.spec.factors.multigrid(), alone = sent.rows.size() == 1;
  const multigrid::Options options = multigrid_options(place_.spec.factors, kMostGathered);
  std::optional<HierarchyOnGpu> hierarchy;
  GatheredRows<T> all;
  if (levels && alone) {
    const GpuRows<T>& rows = sent.rows.front();
    hierarchy = make_hierarchy_on_gpu<T>(
        rows.device(), {rows.rows, rows.nnz, rows.ptr.data(), rows.col.data(), rows.val.data()}, {},
        {}, options, &timer_);
  } else if (levels) {
    all = gather_rows(sent.rows);
  }
  factor_on_gpus(sent.rows);
  ArrivedRows<T> rows = number_on_gpus(std::move(sent), timer_);
  if (levels && !alone) {
    hierarchy = make_hierarchy_on_gpu(all, rows.layouts, place_.own.all, options, &timer_);
    all = {};
  }
  if (levels && !hierarchy) return cuts_.clear(), false;
  pattern_ = rows.found.pattern;
  layout_ = lay_out_by_gpus(place_, rows);
  if (hierarchy) {
    timer_.lap("layout");
    const int threads = layout_.facts.threads;
    multigrid_ =
        layout_.pes.size() > 1
            ? std::make_unique<GpuMultigrid<T>>(place_, *hierarchy, rows.layouts, layout_.plan,
                                                layout_.pes, threads)
            : std::make_unique<GpuMultigrid<T>>(place_, *std::move(hierarchy), rows.layouts.rows(0),
                                                layout_.pes.front(), threads);
    hierarchy.reset();
    report_multigrid();
  }
  begin_solves([&](const auto& layouts, auto& pes) {
    return fill_from_gpus(place_, rows.layouts, layouts, pes);
  });
  return true;
}

template <class T>
void GpuSystem<T>::factor_on_gpus(const std::vector<GpuRows<T>>& rows) {
  const FactorSpec& spec = place_.spec.factors;
  if (!spec.any()) return;
  factors_.resize(rows.size());
  in_parallel(static_cast<int>(rows.size()), [&](int k) {
    factors_[at(k)] = {rows[at(k)].first, inverse_by_gpu(rows[at(k)], fsai_options(spec.level))};
  });
  timer_.lap("inverse");
}

template <class T>
bool GpuSystem<T>::update_by_gpus(const CsrView<T>& matrix) {
  SentRows<T> sent = send_to_gpus(place_, GivenCsr<T>::of(matrix), cuts_, false, timer_);
  require(sent.found.flaw.empty(), sent.found.flaw);
  require(sent.found.pattern == pattern_,
          "update takes a matrix of the same pattern: entries are at other places");
  GpuMultigrid<T>* const multigrid = solve_->multigrid();
  if (multigrid != nullptr) {
    usable_ = false;
    multigrid->remake(place_, sent.rows.front(),
                      multigrid_options(place_.spec.factors, kMostGathered), timer_);
  }
  factor_on_gpus(sent.rows);
  ArrivedRows<T> rows = number_on_gpus(std::move(sent), timer_);
  const bool done =
      rewrite(lay_out_again(place_, layout_, &rows.layouts), [&](const auto& layouts, auto& pes) {
        return fill_from_gpus(place_, rows.layouts, layouts, pes);
      });
  if (multigrid == nullptr) return done;
  usable_ = !done;  // if they do not fit: what solves read is as it was
  if (!done) return false;
  multigrid->rewrite(rows.layouts.rows(0), layout_.pes.front());
  solve_->show_multigrid();
  usable_ = true;
  timer_.lap("levels");
  return true;
}

#define CPUFREE_BY_GPUS(T)                                                                   \
  template bool GpuSystem<T>::set_up_by_gpus(const GivenCsr<T>&, std::vector<std::int64_t>); \
  template bool GpuSystem<T>::update_by_gpus(const CsrView<T>&);
CPUFREE_BY_GPUS(float)
CPUFREE_BY_GPUS(double)
#undef CPUFREE_BY_GPUS

}  // namespace cpufree
