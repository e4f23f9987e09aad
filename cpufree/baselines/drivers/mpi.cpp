#include "cpufree/baselines/drivers/mpi.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "cpufree/base/env.hpp"
#include "cpufree/baselines/comm/mpi.hpp"
#include "cpufree/baselines/comm/nccl.hpp"
#include "cpufree/baselines/drivers/check.hpp"
#include "cpufree/baselines/drivers/parts.hpp"
#include "cpufree/baselines/hosted.hpp"

namespace cpufree {

namespace baselines {

namespace {

std::string broadcast_from(int root, const std::string& text) {
  auto size = static_cast<long long>(text.size());
  check_mpi(MPI_Bcast(&size, 1, MPI_LONG_LONG, root, MPI_COMM_WORLD), "MPI_Bcast");
  std::string all = text;
  all.resize(static_cast<std::size_t>(size));
  check_mpi(MPI_Bcast(all.data(), static_cast<int>(size), MPI_CHAR, root, MPI_COMM_WORLD),
            "MPI_Bcast");
  return all;
}

// Does `work`, and throws everywhere where it has thrown anywhere: all processes go the same way.
template <class F>
void on_all(const MpiPlace& place, F&& work) {
  std::exception_ptr error;
  std::string text;
  try {
    work();
  } catch (const std::exception& e) {
    error = std::current_exception();
    text = e.what();
  }
  int mine = error ? place.rank : place.size;
  int first = 0;
  check_mpi(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (first == place.size) return;
  text = broadcast_from(first, text);
  if (error) std::rethrow_exception(error);
  throw EngineError("process " + std::to_string(first) + " of this baseline: " + text);
}

// The number of this process on its machine, and so its GPU. All processes ask together.
int place_on_machine() {
  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  int place = 0;
  check_mpi(MPI_Comm_rank(machine, &place), "MPI_Comm_rank");
  check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  return place;
}

// How halos travel over MPI, and by whose word.
std::string way_of_halos(GpuAware says, std::optional<bool> wanted, bool staged) {
  std::string text = "this MPI cannot be asked whether it takes addresses of GPU memory";
  if (says != GpuAware::unknown)
    text = std::string("this MPI says that it takes ") + (says == GpuAware::no ? "no " : "") +
           "addresses of GPU memory";
  text += wanted ? "; as the option gpu_aware has it, " : ": ";
  text += staged ? "halos are staged through pinned host memory" : "it is given them";
  if (says == GpuAware::unknown && !wanted) text += "; if it takes them, set gpu_aware to true";
  return text;
}

constexpr KindInfo kMpiKinds[] = {
    {"mpi", true, false, false, false, "MPI"},
    {"nccl_mpi", true, false, true, false, "MPI, and NCCL (libnccl.so.2)"},
};

// NCCL with a GPU in each process; MPI has brought them together, and takes the slowest one's time.
template <class T>
class NcclOfProcesses : public Nccl<T> {
 public:
  using Nccl<T>::Nccl;
  double slowest(double seconds) override { return mpi_largest(seconds); }
};

template <class T>
class MpiBaseline : public Baseline<T> {
 public:
  MpiBaseline(const CsrView<T>& matrix, std::span<const std::int32_t> part,
              std::span<const std::int32_t> order, const BaselineSpec& spec)
      : spec_(spec), place_(mpi_place()), here_(place_on_machine()) {
    const auto begin = std::chrono::steady_clock::now();
    on_all(place_, [&] { set_up(matrix, part, order); });
    if (kind_->nccl) spread_id();
    on_all(place_, [&] { connect(); });
    choose_spmv(hosted_->all(), hosted_->comm(), spec_.spmv, facts_,
                [this](auto&& work) { on_all(place_, work); });
    facts_.setup_seconds = hosted_->comm().slowest(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  std::int32_t rows() const override { return count_rows(rows_); }
  const BaselineFacts& facts() const override { return facts_; }

  // x is written on all processes.
  BaselineResult solve(std::span<const T> b, std::span<T> x, const BaselineSolve& how) override {
    check_solve(how, *kind_);
    check_sizes(b, x, rows());
    const Variant variant = variant_of(how.variant);
    const bool exact = how.exact_iterations >= 0;
    const Stop stop{exact ? -1.0 : how.rtol,
                    static_cast<std::uint64_t>(exact ? how.exact_iterations : how.max_iterations)};
    if (broken_)
      throw EngineError("this baseline failed before: end its processes, and start others");
    broken_ = true;  // unless all of them come to the end
    BaselineResult result;
    on_all(place_, [&] { scatter(hosted_->all(), rows_, b); });
    communicate([&] { hosted_->prepare(how.method, variant, stop, exact); });
    communicate([&] { result.seconds = hosted_->run(how.method, variant, stop, exact); });
    result.seconds = hosted_->comm().slowest(result.seconds);
    collect(x);
    broken_ = false;
    return report(hosted_->ending(how.method), exact, variant, stop, std::move(result));
  }

 private:
  // Does `work`, in which processes wait for one another, and throws everywhere where it has thrown
  // anywhere. The kind mpi ends all processes instead: the others may be in a sum of MPI's, which
  // knows no bound, and which no other collective fits.
  template <class F>
  void communicate(F&& work) const {
    on_all(place_, [&] {
      try {
        work();
      } catch (const std::exception& error) {
        if (!kind_->nccl && place_.size > 1) leave(error.what());
        throw;
      }
    });
  }

  // Ends all processes.
  [[noreturn]] void leave(const std::string& why) const {
    std::fprintf(stderr, "process %d of baseline %s: %s\n", place_.rank, spec_.kind.c_str(),
                 why.c_str());
    mpi_abort(EXIT_FAILURE);
  }

  // What this process does alone.
  void set_up(const CsrView<T>& matrix, std::span<const std::int32_t> part,
              std::span<const std::int32_t> order) {
    kind_ = &find_kind(kMpiKinds, spec_.kind, "baseline of this module");
    check_spec(spec_, *kind_);
    require(spec_.pes == place_.size, "pes is " + std::to_string(spec_.pes) + ", but mpirun has " +
                                          "started " + std::to_string(place_.size) +
                                          " processes: start as many as there are PEs");
    if (kind_->nccl) library_ = load_collectives(spec_.nccl_library);
    gpu_ = choose_gpu();
    gpu::stay_on(gpu_);  // or GPU 0 would have a context of each process
    if (kind_->nccl && place_.rank == 0 && library_.make_id(&id_) != 0)
      throw EngineError("NCCL could not make an id (ncclGetUniqueId)");
    const HaloPlan<T> plan = plan_for(matrix, part, order, spec_.pes);
    rows_ = rows_of(plan);
    ranks_.push_back(std::make_unique<Rank<T>>(place_.rank, gpu_, plan.local[at(place_.rank)],
                                               spec_.preconditioner == Preconditioner::jacobi));
    describe();
  }

  void spread_id() {
    check_mpi(MPI_Bcast(id_.bytes, sizeof(id_.bytes), MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  }

  // With NCCL: waits for the others, which do the same.
  void connect() {
    std::unique_ptr<Comm<T>> comm;
    if (kind_->nccl) {
      const OnDevice here(gpu_);
      comm = std::make_unique<NcclOfProcesses<T>>(
          std::make_shared<CollComms>(library_, id_, place_.rank, place_.size));
    } else {
      comm = std::make_unique<Mpi<T>>(*ranks_.front(), staged_, spec_.wait_limit);
    }
    Driving driving;
    driving.lag = static_cast<std::uint64_t>(spec_.lag);
    driving.wait_limit = spec_.wait_limit;
    hosted_.emplace(std::move(ranks_), std::move(comm), driving);
  }

  int choose_gpu() const {
    const int count = count_gpus();
    if (count == 0)
      throw Unsupported("baseline " + spec_.kind + ": there is no GPU that this process can use");
    require(spec_.gpus.empty() || spec_.gpus.size() == at(spec_.pes),
            "one GPU for each PE: " + std::to_string(spec_.gpus.size()) + " GPUs were named for " +
                std::to_string(spec_.pes) + " PEs");
    const int gpu = spec_.gpus.empty() ? here_ : spec_.gpus[at(place_.rank)];
    require(gpu >= 0 && gpu < count, "process " + std::to_string(place_.rank) + " has no GPU: " +
                                         std::to_string(gpu) + " of " + std::to_string(count));
    return gpu;
  }

  void describe() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    check_mpi(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
    const std::string text(version, at(length));
    const GpuAware says = mpi_gpu_aware();
    staged_ = kind_->nccl ? nccl_avoids_peers() : !spec_.gpu_aware.value_or(says == GpuAware::yes);
    facts_.kind = spec_.kind;
    facts_.pes = spec_.pes;
    facts_.staging = spec_.pes == 1 ? "none" : staged_ ? "host" : "peer";
    facts_.versions.emplace_back("mpi", text.substr(0, text.find(',')));
    if (kind_->nccl) {
      facts_.versions.emplace_back("nccl", version_text(library_.version));
      facts_.notes.push_back("NCCL from " + library_.path + ", one process for each GPU");
      if (staged_) facts_.notes.push_back("NCCL_P2P_DISABLE is set: halos pass through the host");
    } else {
      facts_.notes.push_back(way_of_halos(says, spec_.gpu_aware, staged_));
    }
  }

  void collect(std::span<T> x) const {
    const auto type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    std::vector<T> whole;
    on_all(place_, [&] {
      whole.assign(x.size(), T{0});
      gather(hosted_->all(), rows_, std::span<T>(whole));
    });
    check_mpi(MPI_Allreduce(whole.data(), x.data(), static_cast<int>(x.size()), type, MPI_SUM,
                            MPI_COMM_WORLD),
              "MPI_Allreduce");
  }

  BaselineSpec spec_;
  MpiPlace place_;
  int here_;  // among the processes of its machine
  const KindInfo* kind_ = nullptr;
  CollLibrary library_;  // NCCL, if the kind uses it
  CollId id_;
  int gpu_ = 0;
  bool staged_ = false;                          // halos pass through the host
  std::vector<std::unique_ptr<Rank<T>>> ranks_;  // until hosted_ has them
  RowsOfPes rows_;
  BaselineFacts facts_;
  std::optional<Hosted<T>> hosted_;
  bool broken_ = false;
};

}  // namespace

}  // namespace baselines

MpiPlace mpi_place() {
  int started = 0;
  MPI_Initialized(&started);
  if (started == 0) {
    int given = 0;
    baselines::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given),
                         "MPI_Init_thread");
    std::atexit([] {
      int ended = 0;
      MPI_Finalized(&ended);
      if (ended == 0) MPI_Finalize();
    });
  }
  MpiPlace place;
  baselines::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &place.rank), "MPI_Comm_rank");
  baselines::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &place.size), "MPI_Comm_size");
  return place;
}

std::string mpi_broadcast(const std::string& text) {
  static_cast<void>(mpi_place());
  return baselines::broadcast_from(0, text);
}

void mpi_abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

template <class T>
std::unique_ptr<Baseline<T>> make_baseline(const CsrView<T>& matrix,
                                           std::span<const std::int32_t> part,
                                           std::span<const std::int32_t> order,
                                           const BaselineSpec& spec) {
  return std::make_unique<baselines::MpiBaseline<T>>(matrix, part, order, spec);
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
