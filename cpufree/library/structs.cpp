#include "cpufree/library/structs.hpp"

#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

void set_defaults(cpufree_matrix&) {}

void set_defaults(cpufree_setup& setup) {
  setup.engine = CPUFREE_CPU_THREADS;
  setup.pes = 1;
  setup.method = CPUFREE_CG;
  setup.preconditioner = CPUFREE_JACOBI;
  setup.pc_level = 1;
  setup.check = 1;
}

void set_defaults(cpufree_options& options) {
  const SolveSpec spec;
  options.method = CPUFREE_AS_SET_UP;
  options.preconditioner = CPUFREE_AS_SET_UP;
  options.rtol = spec.rtol;
  options.maxiter = -1;
  options.wait_limit = spec.wait_limit;
  options.replace_every = spec.replace_every;
  options.chebyshev_degree = spec.chebyshev_degree;
  options.device = CPUFREE_HOST;
}

void set_defaults(cpufree_result&) {}
void set_defaults(cpufree_layout&) {}

}  // namespace cpufree
