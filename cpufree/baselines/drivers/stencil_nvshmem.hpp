// The baseline of stencils over NVSHMEM: one process for each GPU, all of which make the same
// calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/baselines/drivers/process.hpp"
#include "cpufree/baselines/drivers/slabs.hpp"
#include "cpufree/baselines/stencil/comm_nvshmem.hpp"

namespace cpufree::baselines {

template <class T>
class ShmemSlabBaseline : public StencilBaseline<T> {
 public:
  explicit ShmemSlabBaseline(const StencilBaselineSpec& spec)
      : spec_(spec), layout_(spec.grid, spec.pes, sizeof(T)) {
    const auto begin = std::chrono::steady_clock::now();
    check_spec(spec, stencil_kind(spec.kind));
    const ShmemExchange* const named = named_exchange();
    // Errors of the machine are found before any rank waits.
    const Process process = process_of(spec);
    process.library.start(spec.rank, spec.pes, process.id);
    std::vector<std::unique_ptr<Slab<T>>> slabs;
    slabs.push_back(
        std::make_unique<Slab<T>>(layout_, spec.rank, process.gpu, spec.depth, /*bare=*/true));
    run_.emplace(std::move(slabs), SlabDriving{false, 1, spec.wait_limit});
    auto comm = std::make_unique<ShmemSlabComm<T>>(run_->slabs(), process.library, spec.wait_limit);
    comm_ = comm.get();
    run_->set_comm(std::move(comm));
    facts_ = facts_of<T>(spec, layout_);
    facts_.versions.emplace_back("nvshmem", process.library.version);
    facts_.notes.push_back("NVSHMEM from " + process.library.path + ", one process for each GPU");
    choose_depth();
    choose_exchange(named);
    facts_.setup_seconds = comm_->team().largest(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
        kCopyLimit);
  }

  const StencilBaselineFacts& facts() const override { return facts_; }

  double run(std::span<const T> start, std::span<T> out, std::int64_t iterations,
             const std::string& variant) override {
    check_run(spec_, start, out, iterations, variant);
    const SlabVariant which = slab_variant(variant);
    return run_unless(broken_, ": end its processes, and start others", [&] {
      const auto count = static_cast<std::uint64_t>(iterations);
      run_->prepare(which, count);
      if (!start.empty()) scatter(layout_, run_->slabs(), start);
      const double seconds = slowest(which, count);
      if (!out.empty()) gather(layout_, run_->slabs(), out, count);
      return seconds;
    });
  }

 private:
  const ShmemExchange* named_exchange() const {
    std::string known = "auto";
    for (const ShmemExchange& exchange : kShmemExchanges) {
      if (spec_.exchange == exchange.name) return &exchange;
      known += std::string(", ") + exchange.name;
    }
    require(spec_.exchange == "auto",
            "unknown exchange '" + spec_.exchange + "'; choose one of: " + known);
    return nullptr;
  }

  // The time of the slowest PE, once all have ended: values of a run are valid only then.
  // Who has given up within it knows more, and is to say so first.
  double slowest(SlabVariant variant, std::uint64_t iterations) {
    return comm_->team().largest(run_->run(variant, iterations), 2.0 * spec_.wait_limit);
  }

  // All have that of PE 0: slabs differ by a plane.
  void choose_depth() {
    Slab<T>& slab = *run_->slabs().front();
    if (spec_.depth == 0) {
      if (slab.pe == 0) slab.choose_depth();
      slab.depth =
          static_cast<int>(comm_->team().largest(slab.pe == 0 ? slab.depth : 0, kCopyLimit));
    }
    facts_.depth = slab.depth_in_use();
  }

  // The fastest by trial, the first one where no other is by 3 %; all PEs go by the same times.
  void choose_exchange(const ShmemExchange* named) {
    if (spec_.pes == 1) return;
    if (named == nullptr) {
      try_exchanges();
      named = &kShmemExchanges[0];
      double least = 0.97 * facts_.exchange_seconds[0].second;
      for (std::size_t k = 1; k < std::size(kShmemExchanges); ++k)
        if (const double seconds = facts_.exchange_seconds[k].second; seconds < least)
          named = &kShmemExchanges[k], least = seconds;
    }
    comm_->use(*named);
    facts_.exchange = named->name;
  }
  // Seconds of an iteration, of all in turn: the first round warms up.
  void try_exchanges() {
    constexpr int kRounds = 5;
    constexpr std::uint64_t kIterations = 32;
    for (const ShmemExchange& exchange : kShmemExchanges)
      facts_.exchange_seconds.emplace_back(exchange.name, HUGE_VAL);
    run_->prepare(SlabVariant::full, kIterations);
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t k = 0; k < std::size(kShmemExchanges); ++k) {
        comm_->use(kShmemExchanges[k]);
        double& least = facts_.exchange_seconds[k].second;
        least = std::min(least, slowest(SlabVariant::full, kIterations) / kIterations);
      }
  }

  StencilBaselineSpec spec_;
  SlabLayout layout_;
  StencilBaselineFacts facts_;
  std::optional<SlabRun<T>> run_;
  ShmemSlabComm<T>* comm_ = nullptr;  // run_ has it
  bool broken_ = false;
};

}  // namespace cpufree::baselines
