// Baselines of stencils on a stand-in for GPUs, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpufree/baselines/drivers/stencil.hpp"
#include "gpu_names.hpp"
#include "harness.hpp"
#include "process_threads.hpp"
#include "stencil_rig.hpp"

namespace stencil_baseline_rig {

using namespace cpufree;
using namespace stencil_rig;

inline constexpr const char* kExchanges[] = {"meet", "signal", "meet_beside", "signal_beside",
                                             "put_beside"};

inline void on_machine(bool deferred, unsigned seed = 1, bool ignore_waits = false) {
  host_gpu::configure({5, true, deferred, seed, ignore_waits});
}

// `kind`: of nvshmem, the exchange may follow a colon; without one they take turns.
inline StencilBaselineSpec spec_of(const std::string& kind, const Grid& grid, int pes) {
  static std::size_t turn = 0;
  StencilBaselineSpec spec;
  const std::size_t colon = kind.find(':');
  spec.kind = kind.substr(0, colon);
  spec.exchange = colon == std::string::npos ? kExchanges[turn++ % std::size(kExchanges)]
                                             : kind.substr(colon + 1);
  spec.grid = grid;
  spec.pes = pes;
  spec.unroll = 4;
  spec.wait_limit = 300.0;
  return spec;
}

// A baseline of which each PE is a process: here, a thread for each call. Values are put together.
template <class T>
class StencilProcesses : public StencilBaseline<T> {
 public:
  explicit StencilProcesses(StencilBaselineSpec spec) : pes_(static_cast<std::size_t>(spec.pes)) {
    spec.nvshmem_id = make_shmem_id(spec.nvshmem_library);
    each_process(pes_.size(), [&](std::size_t pe) {
      StencilBaselineSpec mine = spec;
      mine.rank = static_cast<int>(pe);
      pes_[pe] = make_stencil_baseline<T>(mine);
    });
  }
  const StencilBaselineFacts& facts() const override { return pes_.front()->facts(); }
  const StencilBaselineFacts& facts_of(std::size_t pe) const { return pes_[pe]->facts(); }
  double run(std::span<const T> start, std::span<T> out, std::int64_t iterations,
             const std::string& variant) override {
    if (!out.empty()) std::ranges::copy(start, out.begin());
    seconds.assign(pes_.size(), 0.0);
    each_process(pes_.size(), [&](std::size_t pe) {
      if (static_cast<int>(pe) != dead)
        seconds[pe] = pes_[pe]->run(start, out,
                                    iterations - (static_cast<int>(pe) == hasty ? 1 : 0), variant);
    });
    return seconds.front();
  }

  std::vector<double> seconds;  // of the last run, by process
  int dead = -1;                // a process that does nothing more
  int hasty = -1;               // one that leaves out the last iteration

 private:
  std::vector<std::unique_ptr<StencilBaseline<T>>> pes_;
};

template <class T>
std::unique_ptr<StencilBaseline<T>> make(const StencilBaselineSpec& spec) {
  if (spec.kind == "nvshmem") return std::make_unique<StencilProcesses<T>>(spec);
  return make_stencil_baseline<T>(spec);
}

template <class T>
std::vector<T> run(const StencilBaselineSpec& spec, std::int64_t iterations) {
  const std::vector<T> start = rough<T>(spec.grid, 1);
  std::vector<T> out(start.size(), T{-7});
  make<T>(spec)->run(start, out, iterations, "full");
  return out;
}

template <class T>
void check_grid(const std::string& kind, const Grid& grid, int pes, std::int64_t iterations,
                int depth = 0) {
  StencilBaselineSpec spec = spec_of(kind, grid, pes);
  spec.depth = depth;
  const auto expected = reference::jacobi<T>(rough<T>(grid, 1), nullptr, grid, iterations);
  const bool same = same_bits(run<T>(spec, iterations), expected);
  harness::check(same, (kind + " " + spec.exchange).c_str(), pes, "the bits of the reference",
                 grid.n[0], grid.n[1], grid.n[2], depth);
}

}  // namespace stencil_baseline_rig
