#include "cpufree/run/baseline_mpi.hpp"

#include <chrono>
#include <cstdlib>
#include <optional>

#include "cpufree/baselines/comm_mpi.hpp"
#include "cpufree/baselines/hosted.hpp"
#include "cpufree/run/baseline_check.hpp"
#include "cpufree/run/baseline_parts.hpp"

namespace cpufree {

namespace baselines {

namespace {

// Throws everywhere where `error` is set anywhere, so that all processes go the same way.
void agree(const std::string& error) {
  int mine = error.empty() ? 0 : 1;
  int any = 0;
  check_mpi(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
  if (!error.empty()) throw InvalidInput(error);
  if (any != 0) throw EngineError("another process of this baseline could not be set up");
}

// The number of this process on its machine, and so its GPU.
int place_on_machine() {
  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  int place = 0;
  check_mpi(MPI_Comm_rank(machine, &place), "MPI_Comm_rank");
  check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  return place;
}

constexpr KindInfo kMpi = {"mpi", true, false, false, false, "MPI"};

template <class T>
class MpiBaseline : public Baseline<T> {
 public:
  MpiBaseline(const CsrView<T>& matrix, std::span<const std::int32_t> part,
              std::span<const std::int32_t> order, const BaselineSpec& spec)
      : spec_(spec), place_(mpi_place()) {
    const auto begin = std::chrono::steady_clock::now();
    std::string error;
    try {
      set_up(matrix, part, order);
    } catch (const Error& e) {
      error = e.what();
    }
    agree(error);
    choose_spmv(hosted_->all(), hosted_->comm(), spec_.spmv, facts_);
    facts_.setup_seconds = hosted_->comm().slowest(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  std::int32_t rows() const override { return count_rows(rows_); }
  const BaselineFacts& facts() const override { return facts_; }

  // x is written on all processes.
  BaselineResult solve(std::span<const T> b, std::span<T> x, const BaselineSolve& how) override {
    check_solve(how, kMpi);
    check_sizes(b, x, rows());
    const Variant variant = variant_of(how.variant);
    const bool exact = how.exact_iterations >= 0;
    const Stop stop{exact ? -1.0 : how.rtol,
                    static_cast<std::uint64_t>(exact ? how.exact_iterations : how.max_iterations)};
    scatter(hosted_->all(), rows_, b);
    hosted_->prepare(how.method, variant, stop, exact);
    check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    BaselineResult result;
    result.seconds = hosted_->comm().slowest(hosted_->run(how.method, variant, stop, exact));
    collect(x);
    return report(hosted_->ending(how.method), exact, variant, stop, std::move(result));
  }

 private:
  void set_up(const CsrView<T>& matrix, std::span<const std::int32_t> part,
              std::span<const std::int32_t> order) {
    require(spec_.kind == "mpi",
            "this module has the baseline mpi alone, not '" + spec_.kind + "'");
    check_spec(spec_, kMpi);
    require(spec_.pes == place_.size, "pes is " + std::to_string(spec_.pes) + ", but mpirun has " +
                                          "started " + std::to_string(place_.size) +
                                          " processes: start as many as there are PEs");
    const int gpu = choose_gpu();
    const HaloPlan<T> plan = plan_for(matrix, part, order, spec_.pes);
    rows_ = rows_of(plan);
    std::vector<std::unique_ptr<Rank<T>>> ranks;
    ranks.push_back(std::make_unique<Rank<T>>(place_.rank, gpu, plan.local[at(place_.rank)],
                                              spec_.preconditioner == Preconditioner::jacobi));
    const bool staged = !mpi_takes_gpu_memory();
    auto comm = std::make_unique<Mpi<T>>(*ranks.front(), staged, spec_.wait_limit);
    Driving driving;
    driving.lag = static_cast<std::uint64_t>(spec_.lag);
    driving.wait_limit = spec_.wait_limit;
    hosted_.emplace(std::move(ranks), std::move(comm), driving);
    describe(staged);
  }

  int choose_gpu() const {
    const int count = count_gpus();
    if (count == 0) throw Unsupported("baseline mpi: there is no GPU that this process can use");
    require(spec_.gpus.empty() || spec_.gpus.size() == at(spec_.pes),
            "one GPU for each PE: " + std::to_string(spec_.gpus.size()) + " GPUs were named for " +
                std::to_string(spec_.pes) + " PEs");
    const int gpu = spec_.gpus.empty() ? place_on_machine() : spec_.gpus[at(place_.rank)];
    require(gpu >= 0 && gpu < count, "process " + std::to_string(place_.rank) + " has no GPU: " +
                                         std::to_string(gpu) + " of " + std::to_string(count));
    return gpu;
  }

  void describe(bool staged) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    check_mpi(MPI_Get_library_version(version, &length), "MPI_Get_library_version");
    const std::string text(version, at(length));
    facts_.kind = "mpi";
    facts_.pes = spec_.pes;
    facts_.staging = spec_.pes == 1 ? "none" : staged ? "host" : "peer";
    facts_.versions.emplace_back("mpi", text.substr(0, text.find(',')));
    facts_.notes.push_back(staged ? "this MPI takes no addresses of GPU memory: halos are staged "
                                    "through pinned host memory"
                                  : "GPU-aware MPI: it is given addresses of GPU memory");
  }

  void collect(std::span<T> x) const {
    const auto type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    std::vector<T> whole(x.size(), T{0});
    gather(hosted_->all(), rows_, std::span<T>(whole));
    check_mpi(MPI_Allreduce(whole.data(), x.data(), static_cast<int>(x.size()), type, MPI_SUM,
                            MPI_COMM_WORLD),
              "MPI_Allreduce");
  }

  BaselineSpec spec_;
  MpiPlace place_;
  RowsOfPes rows_;
  BaselineFacts facts_;
  std::optional<Hosted<T>> hosted_;
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
  auto size = static_cast<long long>(text.size());
  baselines::check_mpi(MPI_Bcast(&size, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD), "MPI_Bcast");
  std::string all = text;
  all.resize(static_cast<std::size_t>(size));
  baselines::check_mpi(MPI_Bcast(all.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD),
                       "MPI_Bcast");
  return all;
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
