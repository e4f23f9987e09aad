// The GPU engine of a build without CUDA: it says that it is not there.
#include "cpufree/systems/gpu/engine.hpp"
#include "cpufree/systems/stencil/gpu/stencil.hpp"

namespace cpufree {

bool cuda_built() { return false; }

std::string cuda_runtime() { return ""; }

std::vector<GpuInfo> list_gpus() { return {}; }

std::string gpu_note() {
  return "this build of cpufree has no GPU engine; build it on a machine with an NVIDIA GPU and "
         "the CUDA toolkit (nvcc), or with -C cmake.define.CPUFREE_CUDA=ON";
}

std::size_t gpu_free_bytes(int) { throw Unsupported(gpu_note()); }

std::string peer_problem(const std::vector<int>&) { return gpu_note(); }

int gpu_of(const void*) { throw Unsupported(gpu_note()); }

void start_nvshmem(const std::shared_ptr<Team>&, const std::string&, int, std::size_t) {
  throw Unsupported(gpu_note());
}

void await_nvshmem() {}

namespace {
[[noreturn]] void refuse(const SystemSpec& spec) {
  throw Unsupported("engine " + std::string(engine_name(spec.engine)) + ": " + gpu_note() +
                    "; or use the engine cpu_threads");
}
}  // namespace

template <class T>
std::unique_ptr<System<T>> make_cuda_system(const CsrView<T>&, std::span<const std::int32_t>,
                                            std::span<const std::int32_t>, const SystemSpec& spec) {
  refuse(spec);
}

template <class T>
std::unique_ptr<System<T>> make_cuda_system(SlabPlan<T>, const SystemSpec& spec) {
  refuse(spec);
}

template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>&, const StencilSpec& spec, const StencilRun&,
                               const Progress&) {
  throw Unsupported("engine " + std::string(engine_name(spec.engine)) + ": " + gpu_note() +
                    "; or use the engine cpu_threads");
}

template StencilResult run_cuda_stencil(const StencilProblem<float>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template StencilResult run_cuda_stencil(const StencilProblem<double>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template std::unique_ptr<System<float>> make_cuda_system(SlabPlan<float>, const SystemSpec&);
template std::unique_ptr<System<double>> make_cuda_system(SlabPlan<double>, const SystemSpec&);
template std::unique_ptr<System<float>> make_cuda_system(const CsrView<float>&,
                                                         std::span<const std::int32_t>,
                                                         std::span<const std::int32_t>,
                                                         const SystemSpec&);
template std::unique_ptr<System<double>> make_cuda_system(const CsrView<double>&,
                                                          std::span<const std::int32_t>,
                                                          std::span<const std::int32_t>,
                                                          const SystemSpec&);

}  // namespace cpufree
