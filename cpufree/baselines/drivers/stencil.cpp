#include "cpufree/baselines/drivers/stencil.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "cpufree/base/env.hpp"
#include "cpufree/baselines/drivers/slabs.hpp"
#include "cpufree/baselines/drivers/stencil_nvshmem.hpp"
#include "cpufree/baselines/stencil/comm_device.hpp"

namespace cpufree {

namespace baselines {

namespace {

template <class T>
class SlabBaseline : public StencilBaseline<T> {
 public:
  explicit SlabBaseline(const StencilBaselineSpec& spec)
      : spec_(spec), kind_(stencil_kind(spec.kind)), layout_(spec.grid, spec.pes, sizeof(T)) {
    const auto begin = std::chrono::steady_clock::now();
    check_spec(spec, kind_);
    const std::vector<int> gpus = gpus_of(spec.kind, spec.pes, spec.gpus);
    // Before any memory is taken: what is missing is known at once.
    std::optional<CollLibrary> library;
    if (kind_.nccl) library = load_collectives(spec.nccl_library);
    if (kind_.peers) connect(gpus, spec.kind);
    std::vector<std::unique_ptr<Slab<T>>> slabs;
    for (int pe = 0; pe < spec.pes; ++pe)
      slabs.push_back(std::make_unique<Slab<T>>(layout_, pe, gpus[at(pe)], spec.depth));
    if (spec.depth == 0) {  // slabs differ by a plane: one trial for all
      slabs.front()->choose_depth();
      for (const auto& slab : slabs) slab->depth = slabs.front()->depth;
    }
    facts_ = facts_of<T>(spec, layout_);
    if (library && spec.pes > 1 && nccl_avoids_peers()) facts_.staging = "host";
    facts_.depth = slabs.front()->depth_in_use();
    run_.emplace(
        std::move(slabs),
        SlabDriving{spec.threads, kind_.graphs ? static_cast<std::uint64_t>(spec.unroll) : 1,
                    spec.wait_limit});
    run_->set_comm(make_comm(gpus, library));
    describe(library);
    facts_.setup_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const StencilBaselineFacts& facts() const override { return facts_; }

  double run(std::span<const T> start, std::span<T> out, std::int64_t iterations,
             const std::string& variant) override {
    check_run(spec_, start, out, iterations, variant);
    const SlabVariant which = slab_variant(variant);
    return run_unless(broken_, kBusyAdvice, [&] {
      const auto count = static_cast<std::uint64_t>(iterations);
      run_->prepare(which, count);
      if (!start.empty()) scatter(layout_, run_->slabs(), start);
      const double seconds = run_->run(which, count);
      if (out.empty()) return seconds;
      if (out.data() != start.data()) std::memcpy(out.data(), start.data(), out.size_bytes());
      gather(layout_, run_->slabs(), out, count);
      return seconds;
    });
  }

 private:
  std::unique_ptr<SlabComm<T>> make_comm(const std::vector<int>& gpus,
                                         const std::optional<CollLibrary>& library) const {
    const auto& slabs = run_->slabs();
    if (spec_.pes == 1) return std::make_unique<NoComm<T>>(slabs);
    if (library)
      return std::make_unique<CollectiveComm<T>>(slabs,
                                                 std::make_shared<CollComms>(*library, gpus));
    if (spec_.kind == "copy") return std::make_unique<CopyComm<T>>(slabs);
    if (spec_.kind == "overlap") return std::make_unique<OverlapComm<T>>(slabs);
    if (spec_.kind == "p2p") return std::make_unique<PeerStoreComm<T>>(slabs);
    return std::make_unique<FlagComm<T>>(slabs, spec_.wait_limit);
  }

  void describe(const std::optional<CollLibrary>& library) {
    if (spec_.pes > 1)
      facts_.notes.push_back(spec_.threads ? "one host thread for each GPU"
                                           : "one host thread for all GPUs");
    if (kind_.graphs)
      facts_.notes.push_back(std::to_string(spec_.unroll) + " iterations in a graph");
    if (library) {
      facts_.versions.emplace_back("nccl", version_text(library->version));
      facts_.notes.push_back("NCCL from " + library->path);
    }
  }

  StencilBaselineSpec spec_;
  const StencilKind& kind_;
  SlabLayout layout_;
  StencilBaselineFacts facts_;
  std::optional<SlabRun<T>> run_;
  bool broken_ = false;
};

}  // namespace

}  // namespace baselines

std::vector<BaselineKind> stencil_baseline_kinds(const std::string& nccl_library) {
  std::vector<BaselineKind> kinds;
  for (const baselines::StencilKind& info : baselines::kStencilKinds)
    kinds.push_back(baselines::kind_here({info.name, {"jacobi"}, info.needs, false, ""}, info.nccl,
                                         nccl_library));
  return kinds;
}

template <class T>
std::unique_ptr<StencilBaseline<T>> make_stencil_baseline(const StencilBaselineSpec& spec) {
  if (spec.kind == "nvshmem") return std::make_unique<baselines::ShmemSlabBaseline<T>>(spec);
  return std::make_unique<baselines::SlabBaseline<T>>(spec);
}

template std::unique_ptr<StencilBaseline<float>> make_stencil_baseline(const StencilBaselineSpec&);
template std::unique_ptr<StencilBaseline<double>> make_stencil_baseline(const StencilBaselineSpec&);

}  // namespace cpufree
