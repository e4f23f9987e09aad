#include "cpufree/baselines/drivers/solvers.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "cpufree/base/env.hpp"
#include "cpufree/baselines/comm/nccl.hpp"
#include "cpufree/baselines/comm/packets.hpp"
#include "cpufree/baselines/comm/peer_copy.hpp"
#include "cpufree/baselines/drivers/check.hpp"
#include "cpufree/baselines/drivers/nvshmem.hpp"
#include "cpufree/baselines/drivers/parts.hpp"
#include "cpufree/baselines/hosted.hpp"
#include "cpufree/baselines/textbook.hpp"

namespace cpufree {

namespace baselines {

namespace {

template <class T>
class LocalBaseline : public Baseline<T> {
 public:
  LocalBaseline(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                std::span<const std::int32_t> order, const BaselineSpec& spec)
      : spec_(spec), kind_(kind_info(spec.kind)) {
    const auto begin = std::chrono::steady_clock::now();
    check_spec(spec, kind_);
    const std::vector<int> gpus = gpus_of(spec.kind, spec.pes, spec.gpus);
    // Before any memory is taken: what is missing is known at once.
    std::optional<CollLibrary> library;
    if (kind_.nccl) library = load_collectives(spec.nccl_library);
    if (kind_.peers) connect(gpus, spec.kind);
    const HaloPlan<T> plan = plan_for(matrix, part, order, spec.pes);
    std::vector<std::unique_ptr<Rank<T>>> ranks;
    for (int pe = 0; pe < spec.pes; ++pe)
      ranks.push_back(std::make_unique<Rank<T>>(pe, gpus[at(pe)], plan.local[at(pe)],
                                                spec.preconditioner == Preconditioner::jacobi));
    rows_ = rows_of(plan);
    if (kind_.only_cg) textbook_ = std::make_unique<Textbook<T>>(*ranks.front());
    auto comm = make_comm(plan, ranks, gpus, library);
    hosted_.emplace(std::move(ranks), std::move(comm), driving());
    describe(gpus, library);
    choose_spmv(hosted_->all(), hosted_->comm(), kind_.only_cg ? "vendor_default" : spec.spmv,
                facts_);
    facts_.setup_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::int32_t rows() const override { return count_rows(rows_); }
  const BaselineFacts& facts() const override { return facts_; }

  BaselineResult solve(std::span<const T> b, std::span<T> x, const BaselineSolve& how) override {
    check_solve(how, kind_);
    check_sizes(b, x, rows());
    return run_unless(broken_, kBusyAdvice, [&] { return run(b, x, how); });
  }

 private:
  Driving driving() const {
    Driving driving;
    driving.thread_for_each = kind_.nccl && (spec_.threads || is("nccl_graph"));
    driving.loops = is("graph_while");
    driving.unroll = is("nccl_graph") ? static_cast<std::uint64_t>(spec_.unroll) : 1;
    driving.lag = static_cast<std::uint64_t>(spec_.lag);
    driving.wait_limit = spec_.wait_limit;
    return driving;
  }
  bool is(const char* name) const { return spec_.kind == name; }

  std::unique_ptr<Comm<T>> make_comm(const HaloPlan<T>& plan,
                                     const std::vector<std::unique_ptr<Rank<T>>>& ranks,
                                     const std::vector<int>& gpus,
                                     const std::optional<CollLibrary>& library) const {
    std::vector<Rank<T>*> all;
    for (const auto& rank : ranks) all.push_back(rank.get());
    if (library) return std::make_unique<Nccl<T>>(std::make_shared<CollComms>(*library, gpus));
    if (is("peer_copy")) return std::make_unique<PeerCopies<T>>(spec_.wait_limit);
    if (is("graph_while")) return std::make_unique<Packets<T>>(plan, all, spec_.wait_limit);
    return std::make_unique<Alone<T>>();
  }

  void describe(const std::vector<int>& gpus, const std::optional<CollLibrary>& library) {
    facts_.kind = spec_.kind;
    facts_.pes = spec_.pes;
    facts_.staging = spec_.pes == 1 ? "none" : library && nccl_avoids_peers() ? "host" : "peer";
    if (library) {
      facts_.versions.emplace_back("nccl", version_text(library->version));
      facts_.notes.push_back("NCCL from " + library->path +
                             (driving().thread_for_each ? ", one host thread for each GPU"
                                                        : ", one host thread for all GPUs"));
    }
    if (is("nccl_graph"))
      facts_.notes.push_back(std::to_string(spec_.unroll) + " iterations in a graph");
    if (gpus.size() > 1 && is("peer_copy"))
      facts_.notes.push_back("one host thread for all GPUs, sums finished on the host");
    if (is("graph_while"))
      facts_.notes.push_back("two iterations in the body of a loop on the GPUs");
  }

  BaselineResult run(std::span<const T> b, std::span<T> x, const BaselineSolve& how) {
    const Variant variant = variant_of(how.variant);
    const bool exact = how.exact_iterations >= 0;
    const Stop stop{exact ? -1.0 : how.rtol,
                    static_cast<std::uint64_t>(exact ? how.exact_iterations : how.max_iterations)};
    const auto ranks = hosted_->all();
    scatter(ranks, rows_, b);
    Ending ending;
    BaselineResult result;
    if (textbook_ != nullptr) {
      ranks.front()->x.clear(ranks.front()->compute);
      ranks.front()->compute.drain(Deadline(kCopyLimit), "clearing memory");
      const auto begin = std::chrono::steady_clock::now();
      ending = textbook_->run(stop, spec_.wait_limit);
      result.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    } else {
      hosted_->prepare(how.method, variant, stop, exact);
      result.seconds = hosted_->run(how.method, variant, stop, exact);
      ending = hosted_->ending(how.method);
    }
    gather(ranks, rows_, x);
    return report(ending, exact, variant, stop, std::move(result));
  }

  BaselineSpec spec_;
  const KindInfo& kind_;
  std::vector<std::vector<std::int32_t>> rows_;  // of each PE: original numbers
  BaselineFacts facts_;
  std::optional<Hosted<T>> hosted_;
  std::unique_ptr<Textbook<T>> textbook_;
  bool broken_ = false;
};

}  // namespace

}  // namespace baselines

std::string shmem_version(const std::string& library) {
  return baselines::load_shmem(library).version;
}

std::string make_shmem_id(const std::string& library) {
  return baselines::text_of(baselines::load_shmem(library).make_id());
}

std::vector<BaselineKind> baseline_kinds(const std::string& nccl_library) {
  std::vector<BaselineKind> kinds;
  for (const baselines::KindInfo& info : baselines::kKinds) {
    BaselineKind kind{info.name, {"cg"}, info.needs, false, ""};
    if (!info.only_cg) kind.methods = {"cg", "prcg", "pipecg"};
    kinds.push_back(baselines::kind_here(std::move(kind), info.nccl, nccl_library));
  }
  return kinds;
}

template <class T>
std::unique_ptr<Baseline<T>> make_baseline(const CsrView<T>& matrix,
                                           std::span<const std::int32_t> part,
                                           std::span<const std::int32_t> order,
                                           const BaselineSpec& spec) {
  if (spec.kind == "nvshmem_on_stream")
    return std::make_unique<baselines::ShmemBaseline<T>>(matrix, part, order, spec);
  return std::make_unique<baselines::LocalBaseline<T>>(matrix, part, order, spec);
}

template std::unique_ptr<Baseline<float>> make_baseline(const CsrView<float>&,
                                                        std::span<const std::int32_t>,
                                                        std::span<const std::int32_t>,
                                                        const BaselineSpec&);
template std::unique_ptr<Baseline<double>> make_baseline(const CsrView<double>&,
                                                         std::span<const std::int32_t>,
                                                         std::span<const std::int32_t>,
                                                         const BaselineSpec&);

}  // namespace cpufree
