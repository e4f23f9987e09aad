// The functions of cpufree.h. No exception leaves them.
#include "cpufree/cpufree.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpufree/library/held_system.hpp"
#include "cpufree/library/structs.hpp"
#include "cpufree/library/translate.hpp"

using namespace cpufree;

struct cpufree_solver {
  std::atomic_flag busy;  // set during each call; also by a callback of the same thread
  std::variant<std::unique_ptr<HeldSystem<double>>, std::unique_ptr<HeldSystem<float>>> held;
  std::int64_t updates = 0;
  double setup_seconds = 0.0;
  std::optional<SolveResult> last;  // solve
  std::string text;                 // that a caller may be reading
};

namespace {

struct LastError {
  std::string text;
  std::int64_t row = -1, column = -1;
};
thread_local LastError last_error;

class Busy : public Error {
 public:
  Busy() : Error("another call is using this solver: one solver is for one call at a time") {}
};

std::int32_t keep(std::int32_t status, const char* text, std::int64_t row = -1,
                  std::int64_t column = -1) noexcept {
  try {
    last_error.text = text;
  } catch (...) {
    last_error.text.clear();  // no memory for it; the status says what has happened
  }
  last_error.row = row;
  last_error.column = column;
  return status;
}

std::int32_t number_of(BadEntry::Kind kind) {
  switch (kind) {
    case BadEntry::Kind::not_finite:
      return CPUFREE_NOT_FINITE;
    case BadEntry::Kind::diagonal:
      return CPUFREE_BAD_DIAGONAL;
    case BadEntry::Kind::not_symmetric:
      return CPUFREE_NOT_SYMMETRIC;
  }
  return CPUFREE_INVALID_INPUT;
}

// Calls f; returns its error as a number.
template <class F>
std::int32_t guarded(F&& f) noexcept {
  try {
    f();
    return CPUFREE_OK;
  } catch (const BadEntry& e) {
    return keep(number_of(e.kind()), e.what(), e.row(), e.column());
  } catch (const InvalidInput& e) {
    return keep(CPUFREE_INVALID_INPUT, e.what());
  } catch (const Unsupported& e) {
    return keep(CPUFREE_UNSUPPORTED, e.what());
  } catch (const OutOfMemory& e) {
    return keep(CPUFREE_OUT_OF_MEMORY, e.what());
  } catch (const WaitTimeout& e) {
    return keep(CPUFREE_WAIT_TIMEOUT, e.what());
  } catch (const Busy& e) {
    return keep(CPUFREE_BUSY, e.what());
  } catch (const EngineError& e) {
    return keep(CPUFREE_ENGINE_ERROR, e.what());
  } catch (const std::bad_alloc&) {
    return keep(CPUFREE_OUT_OF_MEMORY,
                "out of memory; use a smaller problem, or a machine with more");
  } catch (const std::exception& e) {
    return keep(CPUFREE_INTERNAL_ERROR, e.what());
  } catch (...) {
    return keep(CPUFREE_INTERNAL_ERROR, "an exception of an unknown kind");
  }
}

// The same for a call with a solver, which no other thread uses meanwhile.
template <class F>
std::int32_t guarded(cpufree_solver* solver, F&& f) noexcept {
  return guarded([&] {
    require(solver != nullptr, "the solver is a null pointer: create one first");
    if (solver->busy.test_and_set(std::memory_order_acquire)) throw Busy();
    const struct Release {
      std::atomic_flag& busy;
      ~Release() { busy.clear(std::memory_order_release); }
    } release{solver->busy};
    f(*solver);
  });
}

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

cpufree_matrix given_matrix(const cpufree_matrix* matrix) {
  require(matrix != nullptr, "the matrix is a null pointer");
  return taken(matrix, "cpufree_matrix");
}

template <class T>
auto held_of(const cpufree_matrix& given, const cpufree_setup& setup) {
  const CsrView<T> matrix = matrix_of<T>(given);
  const auto numbers = [&](const std::int32_t* data) {
    return std::span(data, data == nullptr ? 0 : static_cast<std::size_t>(matrix.n));
  };
  return std::make_unique<HeldSystem<T>>(matrix, numbers(setup.part), numbers(setup.order),
                                         system_spec_of(setup, matrix.n), setup.check != 0);
}

constexpr std::int32_t type_of(const HeldSystem<double>&) { return CPUFREE_FLOAT64; }
constexpr std::int32_t type_of(const HeldSystem<float>&) { return CPUFREE_FLOAT32; }

template <class T>
SolveResult solve_with(HeldSystem<T>& held, const void* b, const void* x0, void* x,
                       const SolveSpec& spec, const cpufree_options& options) {
  require(
      b != nullptr && x != nullptr,
      "b and x must not be null pointers (from Fortran: b, x and x0 have a value of the type of "
      "the matrix for each row)");
  const auto n = static_cast<std::size_t>(held.rows());
  const int device = options.device == CPUFREE_HOST ? VectorView<T>::kHost : options.device;
  require(device >= VectorView<T>::kHost,
          "device is CPUFREE_HOST or the number of a GPU, not " + std::to_string(device));
  Progress tell;
  if (options.progress != nullptr)
    tell = [&](std::int64_t iteration, double residual) {
      return options.progress(iteration, residual, options.context) == 0;
    };
  return held.solve({static_cast<const T*>(b), n, device},
                    {static_cast<const T*>(x0), x0 == nullptr ? 0 : n, device},
                    {static_cast<T*>(x), n, device}, spec, tell);
}

}  // namespace

void cpufree_matrix_init(cpufree_matrix* matrix, size_t size) { initialise(matrix, size); }
void cpufree_setup_init(cpufree_setup* setup, size_t size) { initialise(setup, size); }
void cpufree_options_init(cpufree_options* options, size_t size) { initialise(options, size); }
void cpufree_result_init(cpufree_result* result, size_t size) { initialise(result, size); }
void cpufree_layout_init(cpufree_layout* layout, size_t size) { initialise(layout, size); }

int32_t cpufree_create(const cpufree_matrix* matrix, const cpufree_setup* setup,
                       cpufree_solver** solver) {
  if (solver != nullptr) *solver = nullptr;
  return guarded([&] {
    require(solver != nullptr, "there is no place for the solver: it is a null pointer");
    const Clock::time_point begin = Clock::now();
    const cpufree_matrix given = given_matrix(matrix);
    const cpufree_setup how = taken(setup, "cpufree_setup");
    auto made = std::make_unique<cpufree_solver>();
    if (given.type == CPUFREE_FLOAT64)
      made->held = held_of<double>(given, how);
    else if (given.type == CPUFREE_FLOAT32)
      made->held = held_of<float>(given, how);
    else
      throw InvalidInput("the type of values is CPUFREE_FLOAT64 or CPUFREE_FLOAT32, not " +
                         std::to_string(given.type));
    made->setup_seconds = since(begin);
    *solver = made.release();
  });
}

int32_t cpufree_update(cpufree_solver* solver, const cpufree_matrix* matrix, int32_t aggregates) {
  return guarded(solver, [&](cpufree_solver& s) {
    const Clock::time_point begin = Clock::now();
    const cpufree_matrix given = given_matrix(matrix);
    require(aggregates == CPUFREE_KEEP_AGGREGATES || aggregates == CPUFREE_NEW_AGGREGATES,
            "aggregates is CPUFREE_KEEP_AGGREGATES or CPUFREE_NEW_AGGREGATES");
    std::visit(
        [&]<class T>(const std::unique_ptr<HeldSystem<T>>& held) {
          require(given.type == type_of(*held),
                  "the values are of another type than those of this solver");
          held->update(matrix_of<T>(given), aggregates == CPUFREE_NEW_AGGREGATES);
        },
        s.held);
    s.setup_seconds = since(begin);
    ++s.updates;
  });
}

int32_t cpufree_solve(cpufree_solver* solver, const void* b, const void* x0, void* x,
                      const cpufree_options* options, cpufree_result* result) {
  return guarded(solver, [&](cpufree_solver& s) {
    const cpufree_options given = taken(options, "cpufree_options");
    if (result != nullptr) check_size(*result, "cpufree_result");
    std::visit(
        [&](const auto& held) {
          const SolveSpec spec = solve_spec_of(given, held->spec().first, held->rows());
          s.last = solve_with(*held, b, x0, x, spec, given);
          give(result, result_of(*s.last, spec), "cpufree_result");
        },
        s.held);
  });
}

int32_t cpufree_report(cpufree_solver* solver, cpufree_layout* layout) {
  return guarded(solver, [&](cpufree_solver& s) {
    require(layout != nullptr, "there is no place for the layout: it is a null pointer");
    cpufree_layout made = std::visit(
        [](const auto& held) {
          cpufree_layout of = layout_of(held->plan(), held->spec());
          of.type = type_of(*held);
          return of;
        },
        s.held);
    made.setup_seconds = s.setup_seconds;
    made.updates = s.updates;
    give(layout, made, "cpufree_layout");
  });
}

int32_t cpufree_report_text(cpufree_solver* solver, const char** text) {
  return guarded(solver, [&](cpufree_solver& s) {
    require(text != nullptr, "there is no place for the text: it is a null pointer");
    s.text = std::visit(
        [&](const auto& held) {
          return text_of(held->plan(), held->spec(), s.setup_seconds, s.last ? &*s.last : nullptr);
        },
        s.held);
    *text = s.text.c_str();
  });
}

int32_t cpufree_history(cpufree_solver* solver, const double** norms, int64_t* count,
                        int64_t* stride) {
  return guarded(solver, [&](cpufree_solver& s) {
    require(norms != nullptr && count != nullptr && stride != nullptr,
            "norms, count and stride must not be null pointers");
    require(s.last.has_value(), "there is no history before the first solve");
    *norms = s.last->history.data();
    *count = static_cast<std::int64_t>(s.last->history.size());
    *stride = s.last->outcome.history_stride;
  });
}

void cpufree_destroy(cpufree_solver* solver) { delete solver; }

const char* cpufree_error(void) { return last_error.text.c_str(); }

void cpufree_error_entry(int64_t* row, int64_t* column) {
  if (row != nullptr) *row = last_error.row;
  if (column != nullptr) *column = last_error.column;
}

const char* cpufree_reason_name(int32_t reason) { return name_of_reason(reason); }
const char* cpufree_version(void) { return CPUFREE_VERSION; }
