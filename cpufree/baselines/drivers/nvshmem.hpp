// The baseline of NVSHMEM on streams: one process for each GPU, all of which make the same calls.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/baselines/comm/nvshmem.hpp"
#include "cpufree/baselines/drivers/parts.hpp"
#include "cpufree/baselines/drivers/process.hpp"
#include "cpufree/baselines/hosted.hpp"

namespace cpufree::baselines {

template <class T>
class ShmemBaseline : public Baseline<T> {
 public:
  ShmemBaseline(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                std::span<const std::int32_t> order, const BaselineSpec& spec)
      : spec_(spec), kind_(kind_info(spec.kind)) {
    const auto begin = std::chrono::steady_clock::now();
    check_spec(spec, kind_);
    // Errors of the machine or the matrix are found before any rank waits.
    const Process process = process_of(spec);
    const HaloPlan<T> plan = plan_for(matrix, part, order, spec.pes);
    rows_ = rows_of(plan);
    std::vector<std::unique_ptr<Rank<T>>> ranks;
    ranks.push_back(std::make_unique<Rank<T>>(spec.rank, process.gpu, plan.local[at(spec.rank)],
                                              spec.preconditioner == Preconditioner::jacobi));
    process.library.start(spec.rank, spec.pes, process.id);
    auto comm =
        std::make_unique<Nvshmem<T>>(plan, *ranks.front(), process.library, spec.wait_limit);
    Driving driving;
    driving.lag = static_cast<std::uint64_t>(spec.lag);
    driving.wait_limit = spec.wait_limit;
    hosted_.emplace(std::move(ranks), std::move(comm), driving);
    describe(process.library);
    choose_spmv(hosted_->all(), hosted_->comm(), spec.spmv, facts_);
    facts_.setup_seconds = hosted_->comm().slowest(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  std::int32_t rows() const override { return count_rows(rows_); }
  const BaselineFacts& facts() const override { return facts_; }

  BaselineResult solve(std::span<const T> b, std::span<T> x, const BaselineSolve& how) override {
    check_solve(how, kind_);
    check_sizes(b, x, rows());
    return run_unless(broken_, ": end its processes, and start others",
                      [&] { return run(b, x, how); });
  }

 private:
  void describe(const ShmemLibrary& library) {
    facts_.kind = spec_.kind;
    facts_.pes = spec_.pes;
    facts_.staging = spec_.pes == 1 ? "none" : "peer";
    facts_.versions.emplace_back("nvshmem", library.version);
    facts_.notes.push_back("NVSHMEM from " + library.path + ", one process for each GPU");
  }

  BaselineResult run(std::span<const T> b, std::span<T> x, const BaselineSolve& how) {
    const Variant variant = variant_of(how.variant);
    const bool exact = how.exact_iterations >= 0;
    const Stop stop{exact ? -1.0 : how.rtol,
                    static_cast<std::uint64_t>(exact ? how.exact_iterations : how.max_iterations)};
    scatter(hosted_->all(), rows_, b);
    hosted_->prepare(how.method, variant, stop, exact);
    BaselineResult result;
    result.seconds = hosted_->comm().slowest(hosted_->run(how.method, variant, stop, exact));
    gather(hosted_->all(), rows_, x);
    return report(hosted_->ending(how.method), exact, variant, stop, std::move(result));
  }

  BaselineSpec spec_;
  const KindInfo& kind_;
  RowsOfPes rows_;
  BaselineFacts facts_;
  std::optional<Hosted<T>> hosted_;
  bool broken_ = false;
};

}  // namespace cpufree::baselines
