// What a user asks for. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "cpufree/solvers/args.hpp"

namespace cpufree {

enum class Engine { cpu_threads };

struct SystemSpec {
  Engine engine = Engine::cpu_threads;
  int pes = 1;
  int blocks = 0;  // per PE; 0: as many as there are cores, shared among the PEs
};

struct SolveSpec {
  Method method = Method::prcg;
  Preconditioner preconditioner = Preconditioner::jacobi;
  double rtol = 1e-5;
  double atol = 0.0;
  std::int64_t maxiter = 0;  // 0: none, the initial residual is judged
  double time_limit = 0.0;   // seconds, 0: none
  double wait_limit = 60.0;  // seconds that a block may wait for another one
  std::int32_t replace_every = 50;
  std::int32_t chebyshev_degree = 4;
};

// Names as users write them. Throw InvalidInput that lists the valid ones.
Engine engine_from_name(const std::string& name);
Method method_from_name(const std::string& name);
Preconditioner preconditioner_from_name(const std::string& name);

// "CONVERGED_RTOL" and so on.
const char* reason_name(Reason reason);

// Throws InvalidInput where a number is out of its range.
void check(const SystemSpec& spec);
void check(const SolveSpec& spec);

}  // namespace cpufree
