#include "cpufree/engines/cpu_threads/remote_port.hpp"
#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/solvers/host/dispatch.hpp"

namespace cpufree {

template <class T>
CpuKernel<T> cpu_remote_kernel(const SolveSpec& spec) {
  using P = cpu_threads::RemotePort;
  using Args = SolveArgs<Sliced<T, P::width>>;
  return with_algorithm<T>(spec.method, spec.preconditioner,
                           []<template <class, class> class Algorithm, class M>() -> CpuKernel<T> {
                             return [](cpu_threads::Port& port, const Args& args) {
                               P far(port);
                               solve_kernel<Algorithm, M>(far, args);
                             };
                           });
}

template CpuKernel<float> cpu_remote_kernel<float>(const SolveSpec&);
template CpuKernel<double> cpu_remote_kernel<double>(const SolveSpec&);

}  // namespace cpufree
