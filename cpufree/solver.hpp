// Systems A x = b, A sparse, symmetric and positive definite, from C++: a class over cpufree.h.
//
//   cpufree::Solver solver({row_ptr, col, val});
//   std::vector<double> x(b.size());
//   const cpufree::Result result = solver.solve(b, x, {.rtol = 1e-8});
//
// A solver is for one thread at a time; threads with a solver each do not know of one another.
// Spans are read and written during the call alone. Errors are those of cpufree/base/error.hpp, and
// two below. docs/from-cpp.md has an example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/cpufree.h"

namespace cpufree {

// A PE waited longer for another one than Options::wait_limit.
class SolverTimeout : public EngineError {
 public:
  using EngineError::EngineError;
};
// Another thread is using this solver.
class SolverBusy : public EngineError {
 public:
  using EngineError::EngineError;
};

// A square matrix in compressed rows, both triangles stored: columns of a row increase.
template <class T>
struct Csr {
  std::span<const std::int64_t> row_ptr;  // rows + 1
  std::span<const std::int32_t> col;
  std::span<const T> val;
};

// How a matrix is set up (cpufree_setup). Spans that are empty leave it to the library.
struct Setup {
  std::int32_t engine = CPUFREE_CPU_THREADS;
  std::int32_t pes = 1;
  std::int32_t blocks = 0;  // per PE; 0: as many as there are cores, or as run at once on a GPU
  std::int32_t method = CPUFREE_CG;
  std::int32_t preconditioner = CPUFREE_JACOBI;
  std::int32_t pc_level = 1;
  bool check = true;
  std::span<const std::int32_t> gpus = {};   // of each PE
  std::span<const std::int32_t> part = {};   // the PE of each row
  std::span<const std::int32_t> order = {};  // in which sequence PEs number their rows
  // CPUFREE_AMG: rows x modes, row by row, and the node of each row.
  std::span<const double> near_nullspace = {};
  std::span<const std::int32_t> node = {};
  std::vector<std::pair<std::string, double>> machine = {};  // numbers, as in machine files
};

// Called with the iteration and its residual while kernels run; false ends the solve.
using SolveProgress = std::function<bool(std::int64_t, double)>;

// What is asked of a solve (cpufree_options).
struct Options {
  double rtol = 1e-5;
  double atol = 0.0;
  std::optional<std::int64_t> maxiter = {};  // none: 10 times the rows
  std::int32_t method = CPUFREE_AS_SET_UP;
  std::int32_t preconditioner = CPUFREE_AS_SET_UP;
  double time_limit = 0.0;   // seconds, 0: none
  double wait_limit = 60.0;  // seconds
  std::int32_t replace_every = 50;
  std::int32_t chebyshev_degree = 4;
  std::int32_t device = CPUFREE_HOST;  // where the vectors lie
  SolveProgress progress = {};         // what it throws, solve throws
};

// How a solve ended. That it has not converged is no error.
struct Result : cpufree_result {
  explicit operator bool() const { return converged != 0; }
  std::string_view reason_text() const { return cpufree_reason_name(reason); }
};

// Throws what a status of cpufree.h stands for, with the text of the last error of this thread.
inline void throw_unless_ok(std::int32_t status) {
  if (status == CPUFREE_OK) return;
  const std::string text = cpufree_error();
  std::int64_t row = -1, column = -1;
  cpufree_error_entry(&row, &column);
  switch (status) {
    case CPUFREE_INVALID_INPUT:
      throw InvalidInput(text);
    case CPUFREE_NOT_FINITE:
      throw BadEntry(BadEntry::Kind::not_finite, row, column, text);
    case CPUFREE_BAD_DIAGONAL:
      throw BadEntry(BadEntry::Kind::diagonal, row, column, text);
    case CPUFREE_NOT_SYMMETRIC:
      throw BadEntry(BadEntry::Kind::not_symmetric, row, column, text);
    case CPUFREE_UNSUPPORTED:
      throw Unsupported(text);
    case CPUFREE_OUT_OF_MEMORY:
      throw OutOfMemory(text);
    case CPUFREE_WAIT_TIMEOUT:
      throw SolverTimeout(text);
    case CPUFREE_BUSY:
      throw SolverBusy(text);
    case CPUFREE_ENGINE_ERROR:
      throw EngineError(text);
    default:
      throw Error(text);
  }
}

// A matrix on its PEs: set up once, solved often. T: double or float.
template <class T>
class BasicSolver {
  static_assert(std::is_same_v<T, double> || std::is_same_v<T, float>);

 public:
  explicit BasicSolver(const Csr<T>& matrix, const Setup& setup = {}) {
    require(matrix.row_ptr.size() >= 2, "row_ptr has an entry more than there are rows");
    rows_ = matrix.row_ptr.size() - 1;
    const cpufree_matrix given = given_of(matrix);
    std::vector<const char*> names;
    std::vector<double> values;
    const cpufree_setup how = given_of(setup, names, values);
    cpufree_solver* made = nullptr;
    throw_unless_ok(cpufree_create(&given, &how, &made));
    solver_.reset(made);
  }

  std::size_t rows() const { return rows_; }

  // Takes new values of the same pattern. `aggregates`: of CPUFREE_AMG.
  void update(const Csr<T>& matrix, std::int32_t aggregates = CPUFREE_KEEP_AGGREGATES) {
    const cpufree_matrix given = given_of(matrix);
    throw_unless_ok(cpufree_update(solver_.get(), &given, aggregates));
  }

  // Solves A x = b; x0: a first guess, or empty.
  Result solve(std::span<const T> b, std::span<T> x, const Options& options = {},
               std::span<const T> x0 = {}) {
    require(b.size() == rows_ && x.size() == rows_ && (x0.empty() || x0.size() == rows_),
            "b, x and x0 have a number for each of the " + std::to_string(rows_) + " rows");
    ProgressCall called{options.progress, nullptr};
    const cpufree_options how = given_of(options, called);
    Result result;
    cpufree_result_init(&result, sizeof(cpufree_result));
    const std::int32_t status = cpufree_solve(
        solver_.get(), b.data(), x0.empty() ? nullptr : x0.data(), x.data(), &how, &result);
    if (called.error) std::rethrow_exception(called.error);
    throw_unless_ok(status);
    return result;
  }

  cpufree_layout layout() const {
    cpufree_layout layout;
    cpufree_layout_init(&layout, sizeof layout);
    throw_unless_ok(cpufree_report(solver_.get(), &layout));
    return layout;
  }
  // The layout and the last solve, in lines.
  std::string report() const {
    const char* text = nullptr;
    throw_unless_ok(cpufree_report_text(solver_.get(), &text));
    return text;
  }
  // Norms of the residual of the last solve, at iterations 0, stride, 2 stride, ...
  std::pair<std::vector<double>, std::int64_t> history() const {
    const double* norms = nullptr;
    std::int64_t count = 0, stride = 1;
    throw_unless_ok(cpufree_history(solver_.get(), &norms, &count, &stride));
    return {std::vector<double>(norms, norms + count), stride};
  }

 private:
  struct Destroy {
    void operator()(cpufree_solver* solver) const { cpufree_destroy(solver); }
  };
  struct ProgressCall {
    const SolveProgress& progress;
    std::exception_ptr error;  // which must not pass through C

    static std::int32_t call(std::int64_t iteration, double residual, void* context) {
      ProgressCall& called = *static_cast<ProgressCall*>(context);
      try {
        return called.progress(iteration, residual) ? 0 : 1;
      } catch (...) {
        called.error = std::current_exception();
        return 1;
      }
    }
  };

  static std::int32_t count_of(std::size_t size) {
    require(size <= std::size_t{std::numeric_limits<std::int32_t>::max()},
            "an array has more than 2^31 - 1 entries");
    return static_cast<std::int32_t>(size);
  }

  static cpufree_matrix given_of(const Csr<T>& matrix) {
    require(!matrix.row_ptr.empty() && matrix.col.size() == matrix.val.size(),
            "row_ptr, col and val do not belong together");
    cpufree_matrix given;
    cpufree_matrix_init(&given, sizeof given);
    given.rows = count_of(matrix.row_ptr.size() - 1);
    given.type = std::is_same_v<T, double> ? CPUFREE_FLOAT64 : CPUFREE_FLOAT32;
    given.nonzeros = static_cast<std::int64_t>(matrix.col.size());
    given.row_ptr = matrix.row_ptr.data();
    given.col = matrix.col.data();
    given.val = matrix.val.data();
    return given;
  }

  cpufree_setup given_of(const Setup& setup, std::vector<const char*>& names,
                         std::vector<double>& values) const {
    const auto one_a_row = [&](std::span<const std::int32_t> array, const char* name) {
      require(
          array.empty() || array.size() == rows_,
          std::string(name) + " has a number for each of the " + std::to_string(rows_) + " rows");
      return array.empty() ? nullptr : array.data();
    };
    cpufree_setup given;
    cpufree_setup_init(&given, sizeof given);
    given.engine = setup.engine;
    given.pes = setup.pes;
    given.blocks = setup.blocks;
    given.method = setup.method;
    given.preconditioner = setup.preconditioner;
    given.pc_level = setup.pc_level;
    given.check = setup.check ? 1 : 0;
    given.gpus = count_of(setup.gpus.size());
    given.gpu = setup.gpus.data();
    given.part = one_a_row(setup.part, "part");
    given.order = one_a_row(setup.order, "order");
    given.node = one_a_row(setup.node, "node");
    require(setup.near_nullspace.size() % rows_ == 0,
            "near_nullspace has the same count of numbers for each row");
    given.modes = count_of(setup.near_nullspace.size() / rows_);
    given.near_nullspace = setup.near_nullspace.data();
    for (const auto& [name, value] : setup.machine) {
      names.push_back(name.c_str());
      values.push_back(value);
    }
    given.numbers = count_of(names.size());
    given.name = names.data();
    given.value = values.data();
    return given;
  }

  static cpufree_options given_of(const Options& options, ProgressCall& called) {
    cpufree_options given;
    cpufree_options_init(&given, sizeof given);
    given.method = options.method;
    given.preconditioner = options.preconditioner;
    given.rtol = options.rtol;
    given.atol = options.atol;
    given.maxiter = options.maxiter.value_or(-1);
    given.time_limit = options.time_limit;
    given.wait_limit = options.wait_limit;
    given.replace_every = options.replace_every;
    given.chebyshev_degree = options.chebyshev_degree;
    given.device = options.device;
    given.progress = options.progress ? &ProgressCall::call : nullptr;
    given.context = &called;
    return given;
  }

  std::size_t rows_ = 0;
  std::unique_ptr<cpufree_solver, Destroy> solver_;
};

using Solver = BasicSolver<double>;
using SingleSolver = BasicSolver<float>;

}  // namespace cpufree
