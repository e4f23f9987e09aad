#include "cpufree/run/baseline_stencil.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "cpufree/baselines/stencil_comm_device.hpp"
#include "cpufree/baselines/stencil_drive.hpp"
#include "cpufree/run/baseline_check.hpp"

namespace cpufree {

namespace baselines {

namespace {

struct StencilKind {
  const char* name;
  bool peers;  // GPUs reach one another's memory
  bool nccl;
  bool graphs;
  const char* needs;
};
constexpr const char* kPeers = "GPUs that reach one another's memory";
constexpr const char* kNccl = "NCCL (libnccl.so.2)";
constexpr StencilKind kStencilKinds[] = {
    {"copy", true, false, false, kPeers},     {"overlap", true, false, false, kPeers},
    {"p2p", true, false, false, kPeers},      {"nccl", false, true, false, kNccl},
    {"nccl_graph", false, true, true, kNccl}, {"flags_graph", true, false, true, kPeers},
};

const StencilKind& stencil_kind(const std::string& name) {
  std::string known;
  for (const StencilKind& kind : kStencilKinds) {
    if (name == kind.name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw InvalidInput("unknown stencil baseline '" + name + "'; choose one of: " + known);
}

SlabVariant slab_variant(const std::string& name) {
  switch (variant_of(name)) {
    case Variant::full:
      return SlabVariant::full;
    case Variant::no_compute:
      return SlabVariant::no_compute;
    default:
      return SlabVariant::no_comm;
  }
}

void check_spec(const StencilBaselineSpec& spec, const StencilKind& kind) {
  check(spec.grid);
  require(spec.pes >= 1 && spec.pes <= kMaxPes, "stencil baselines run on 1 to " +
                                                    std::to_string(kMaxPes) + " GPUs; pes is " +
                                                    std::to_string(spec.pes));
  require(spec.grid.updated() > 0,
          "the grid has no points to update: along an axis that is not "
          "periodic it needs 3 or more");
  require(spec.grid.updated(0) >= spec.pes,
          "slabs are planes of the first axis, and only " + std::to_string(spec.grid.updated(0)) +
              " of them are updated, for " + std::to_string(spec.pes) + " PEs; use fewer PEs");
  require(SlabLayout(spec.grid, 1, 4).plane <= INT32_MAX,
          "a plane of the grid has more than 2^31 points, with those that fill up its rows");
  require(spec.unroll >= 2 && spec.unroll <= 1024 && spec.unroll % 2 == 0,
          "unroll must be an even number from 2 to 1024, not " + std::to_string(spec.unroll));
  require(spec.depth >= 0 && spec.depth <= 1 << 20, "depth must lie between 0 and 2^20 planes");
  require(
      spec.threads || !kind.graphs,
      std::string(kind.name) + " records graphs, each by a thread of its own: leave threads on");
  require(spec.wait_limit > 0.0 && spec.wait_limit <= 1e6,
          "wait_limit must lie between 0 (excluded) and 1e6 seconds: every wait is bounded");
}

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
    check_run(start, out, iterations, variant);
    const SlabVariant which = slab_variant(variant);
    return run_unless(broken_, kBusyAdvice, [&] {
      const auto count = static_cast<std::uint64_t>(iterations);
      run_->prepare(which, count);
      if (!start.empty()) scatter(start);
      const double seconds = run_->run(which, count);
      if (!out.empty()) gather(start, out, count);
      return seconds;
    });
  }

 private:
  void check_run(std::span<const T> start, std::span<T> out, std::int64_t iterations,
                 const std::string& variant) const {
    require(iterations >= 0, "iterations must not be negative");
    const std::size_t points = at(spec_.grid.points());
    require(start.empty() || start.size() == points, "start must have the points of the grid");
    require(out.empty() || (out.size() == points && !start.empty()),
            "out must have the points of the grid, and needs start");
    if (variant == "no-compute" && spec_.pes == 1)
      throw Unsupported("on one PE nothing is left of a stencil without computing");
  }

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
    facts_.kind = spec_.kind;
    facts_.pes = spec_.pes;
    facts_.staging = spec_.pes == 1 ? "none" : "peer";
    for (int pe = 0; pe < spec_.pes; ++pe)
      facts_.planes = std::max(facts_.planes, layout_.planes(pe));
    if (spec_.pes > 1) {
      facts_.halo_bytes = layout_.plane * static_cast<std::int64_t>(sizeof(T));
      facts_.notes.push_back(spec_.threads ? "one host thread for each GPU"
                                           : "one host thread for all GPUs");
    }
    if (kind_.graphs)
      facts_.notes.push_back(std::to_string(spec_.unroll) + " iterations in a graph");
    if (library) {
      facts_.versions.emplace_back("nccl", version_text(library->version));
      facts_.notes.push_back("NCCL from " + library->path);
    }
  }

  // Both copies of each slab: what keeps its values is never stored.
  void scatter(std::span<const T> start) const {
    const Grid& g = spec_.grid;
    for (const auto& slab : run_->slabs()) {
      std::vector<T> box(slab->values[0].size());
      for (std::int64_t k = -1; k <= slab->planes; ++k) {
        const std::int64_t z = (layout_.first(slab->pe) + k + g.n[0]) % g.n[0];
        for (std::int64_t y = 0; y < g.n[1]; ++y)
          std::memcpy(box.data() + (k + 1) * layout_.plane + y * layout_.row,
                      start.data() + (z * g.n[1] + y) * g.n[2], at(g.n[2]) * sizeof(T));
      }
      for (const DeviceArray<T>& copy : slab->values) {
        copy.upload(slab->compute, box.data(), box.size());
        slab->compute.drain(Deadline(kCopyLimit), "a copy to the GPU");
      }
    }
  }

  void gather(std::span<const T> start, std::span<T> out, std::uint64_t copy) const {
    const Grid& g = spec_.grid;
    if (out.data() != start.data()) std::memcpy(out.data(), start.data(), out.size_bytes());
    for (const auto& slab : run_->slabs()) {
      const DeviceArray<T>& values = slab->values[copy % 2];
      std::vector<T> box(values.size());
      values.download(slab->compute, box.data(), box.size());
      for (std::int64_t k = 0; k < slab->planes; ++k)
        for (std::int64_t y = 0; y < g.n[1]; ++y)
          std::memcpy(out.data() + ((layout_.first(slab->pe) + k) * g.n[1] + y) * g.n[2],
                      box.data() + (k + 1) * layout_.plane + y * layout_.row,
                      at(g.n[2]) * sizeof(T));
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
  return std::make_unique<baselines::SlabBaseline<T>>(spec);
}

template std::unique_ptr<StencilBaseline<float>> make_stencil_baseline(const StencilBaselineSpec&);
template std::unique_ptr<StencilBaseline<double>> make_stencil_baseline(const StencilBaselineSpec&);

}  // namespace cpufree
