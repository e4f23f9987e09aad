#include "cpufree/solvers/study.hpp"

#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/solvers/host/dispatch.hpp"

namespace cpufree {

CpuKernel<double> cpu_study_kernel(const SolveSpec& spec) {
  using P = cpu_threads::Port;
  using Matrix = Sliced<double, P::width>;
  return with_study(spec.study, spec.method,
                    []<Study S, template <class, class> class Algorithm>() -> CpuKernel<double> {
                      return study_kernel<S, Algorithm, Identity<double>, AnySlices, P, Matrix>;
                    });
}

}  // namespace cpufree
