#include "cpufree/solvers/host/many.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/entries.hpp"

namespace cpufree {

namespace {

using Clock = std::chrono::steady_clock;

// What all cores know of one another's systems.
struct Common {
  const SolveSpec& spec;
  const Progress& progress;
  Clock::time_point begin = Clock::now();
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::int64_t> ended{0};
  std::atomic<bool> stopped{false};

  // Seconds that are left; infinite without a limit.
  double left() const {
    if (spec.time_limit <= 0.0) return std::numeric_limits<double>::infinity();
    return spec.time_limit - std::chrono::duration<double>(Clock::now() - begin).count();
  }
  // Whether to go on. What the caller's function throws, its own thread passes on.
  bool goes_on() {
    if (std::this_thread::get_id() == caller && progress && !stopped) {
      try {
        if (!progress(ended, 0.0)) stopped = true;
      } catch (...) {
        stopped = true;
        throw;
      }
    }
    return !stopped;
  }
};

// One core, with the layout of the last pattern that it has met.
template <class T>
class Core {
 public:
  void solve(const OneOfMany<T>& one, Common& common, SolvedOne& solved) {
    try {
      take(one.matrix);
      SolveSpec spec = common.spec;
      if (spec.maxiter < 0) spec.maxiter = iterations_without_limit(one.matrix.n);
      if (spec.time_limit > 0.0) spec.time_limit = std::max(common.left(), 1e-9);
      solved.outcome = system_
                           ->solve({one.b.data(), one.b.size()}, {one.x0.data(), one.x0.size()},
                                   {one.x.data(), one.x.size()}, spec,
                                   [&](std::int64_t, double) { return common.goes_on(); })
                           .outcome;
    } catch (const InvalidInput& error) {
      solved.refused = true;
      solved.error = error.what();
      system_.reset();
    }
  }

 private:
  void take(const CsrView<T>& matrix) {
    if (system_ && same_pattern(pattern_, matrix) && system_->update(matrix)) return;
    SystemSpec alone;
    alone.engine = Engine::cpu_threads;
    alone.pes = alone.blocks = 1;
    system_ = make_system<T>(matrix, {}, {}, alone);
    pattern_ = matrix;
  }

  std::unique_ptr<System<T>> system_;
  CsrView<T> pattern_;  // of it
};

}  // namespace

template <class T>
void check_many(const std::vector<OneOfMany<T>>& systems, double tolerance,
                std::vector<SolvedOne>& solved) {
  in_parallel(static_cast<int>(systems.size()), [&](int k) {
    const CsrView<T>& matrix = systems[at(k)].matrix;
    SolvedOne& one = solved[at(k)];
    const EntryReport found = inspect(matrix);
    one.asymmetry = found.asymmetry;
    one.refused = !found.finite || !found.positive_diagonal || !found.mirrored ||
                  !(found.asymmetry <= tolerance);
  });
}

template <class T>
void solve_many(const std::vector<OneOfMany<T>>& systems, const SolveSpec& spec,
                const Progress& progress, std::vector<SolvedOne>& solved) {
  Common common{spec, progress};
  in_parallel(
      static_cast<int>(systems.size()), available_cores(), [] { return Core<T>(); },
      [&](Core<T>& core, int number) {
        const auto k = at(number);
        SolvedOne& one = solved[k];
        if (!common.goes_on()) {
          one.outcome.reason = Reason::interrupted;
        } else if (common.left() <= 0.0) {
          one.outcome.reason = Reason::time_limit;
        } else if (!one.refused) {
          core.solve(systems[k], common, one);
        }
        ++common.ended;
      });
}

#define CPUFREE_MANY(T)                                                                         \
  template void check_many(const std::vector<OneOfMany<T>>&, double, std::vector<SolvedOne>&);  \
  template void solve_many(const std::vector<OneOfMany<T>>&, const SolveSpec&, const Progress&, \
                           std::vector<SolvedOne>&);
CPUFREE_MANY(float)
CPUFREE_MANY(double)

}  // namespace cpufree
