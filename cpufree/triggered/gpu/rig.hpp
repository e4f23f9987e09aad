// What studies on GPUs share: PEs, a layout with triggers in it, and NICs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/triggered/gpu/back_ends.hpp"
#include "cpufree/triggered/gpu/kernels.hpp"
#include "cpufree/triggered/gpu/pes.hpp"

namespace cpufree::triggered {

class GpuRig {
 public:
  GpuRig(const std::vector<int>& devices, const TriggerSizes& sizes, double wait_limit)
      : pes(devices, sizes.blocks), triggers(layout, sizes) {
    pes.set_wait_limit(wait_limit);
    options.wait_limit = wait_limit;
  }

  // After all has been reserved in `layout`, and before `make_nics`.
  void allocate() {
    pes.allocate(layout);
    for (int pe = 0; pe < pes.count(); ++pe)
      sent_.emplace_back(pes.device(pe), static_cast<std::size_t>(pes.count()) *
                                             static_cast<std::size_t>(blocks()));
    options.bytes = layout.bytes();
  }

  // All of the kernels that will run have been loaded, and all memory allocated.
  void make_nics(const std::string& back_end) {
    options.back_end = back_end;
    nics = make_gpu_nics(pes, triggers, options);
  }
  bool counts() const { return nics != nullptr && nics->counts_by_words(); }
  static bool counts_by_words(const std::string& back_end) {
    return back_end == "copy_engine" || back_end == "on_stream";
  }
  // Multiprocessors of a device that NICs of a back end will keep.
  int taken(const std::string& back_end, int device) const {
    return back_end != "block" ? 0 : static_cast<int>(std::ranges::count(pes.devices(), device));
  }
  void prepare(const void* kernel, const gpu::Grid& grid, const std::string& back_end) const {
    pes.prepare(kernel, grid, [&](int device) { return taken(back_end, device); });
  }

  VerbArgs verbs(int pe) const {
    const TriggerBoard board =
        nics != nullptr ? nics->board(pe) : triggers.triggers.board(pes.heap(pe));
    return {board, triggers.counters.counters(pes.heap(pe)),
            sent_[static_cast<std::size_t>(pe)].data()};
  }

  // Ends the NICs; throws EngineError where an operation has not fired, or triggers did not fit.
  void stop_nics() {
    if (nics == nullptr) return;
    const nics::NicReport report = nics->stop();
    if (!report.faults.empty() || !report.waiting.empty())
      throw EngineError("triggers did not fit their operations" + nics::describe(report));
  }

  // What `call` returns. Where it throws, kernels and NICs end before anything is freed: freeing
  // waits for all that runs on a device.
  template <class F>
  auto guarded(F&& call) {
    try {
      return call();
    } catch (...) {
      pes.stop();
      nics.reset();
      throw;
    }
  }

  // Waits for the kernels; says what the NICs had seen where a wait was given up.
  void finish(const std::function<void()>& look) const {
    if (pes.wait(look)) return;
    std::string text = "a block waited longer than allowed; all PEs have left their kernels" +
                       pes.describe_waits();
    if (nics != nullptr) text += nics::describe(nics->stop());
    throw EngineError(text);
  }

  SymmetricLayout layout;
  GpuPes pes;
  GpuTriggerLayout triggers;
  GpuNicsOptions options;

 private:
  int blocks() const { return triggers.triggers.sizes().blocks; }
  std::vector<gpu::DeviceArray<Epoch>> sent_;

 public:
  std::unique_ptr<nics::GpuNics> nics;  // ends before the memory does
};

}  // namespace cpufree::triggered
