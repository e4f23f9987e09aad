// The GPU engine of a shared object next to this one, _gpu.so (engine_table.hpp says why); where it
// is missing or does not load, every function says so.
#include <unistd.h>

#include <string_view>
#include <utility>

#include "cpufree/base/shared_library.hpp"
#include "cpufree/systems/gpu/engine_table.hpp"

namespace cpufree {

namespace {

struct Loaded {
  const GpuEngineTable* table = nullptr;
  std::string note;  // why there is no table
};

Loaded load() {
  const std::string path = folder_of(reinterpret_cast<const void*>(&load)) + "_gpu.so";
  if (access(path.c_str(), F_OK) != 0)
    return {nullptr,
            "this build of cpufree has no GPU engine; build it on a machine with an NVIDIA GPU and "
            "the CUDA toolkit (nvcc), or with -C cmake.define.CPUFREE_CUDA=ON"};
  try {
    const SharedLibrary library(path.c_str(), "cpufree's GPU engine", "the one of the same build",
                                "install cpufree anew");
    std::function<const GpuEngineTable*()> get;
    library.find("cpufree_gpu_engine", get);
    const GpuEngineTable* const table = get();
    if (std::string_view(table->version) == CPUFREE_VERSION) return {table, ""};
    return {nullptr, "cpufree's GPU engine is of version " + std::string(table->version) +
                         ", the rest of cpufree is " CPUFREE_VERSION ": install cpufree anew"};
  } catch (const Unsupported& error) {
    return {nullptr, error.what()};
  }
}

const Loaded& loaded() {
  static const Loaded found = load();
  return found;
}

const GpuEngineTable& engine() {
  if (loaded().table == nullptr) throw Unsupported(loaded().note);
  return *loaded().table;
}

// The same for who could have named another engine.
const GpuEngineTable& engine_for(Engine wanted) {
  if (loaded().table == nullptr)
    throw Unsupported("engine " + std::string(engine_name(wanted)) + ": " + loaded().note +
                      "; or use the engine cpu_threads");
  return *loaded().table;
}

}  // namespace

bool cuda_built() { return loaded().table != nullptr; }

std::string cuda_runtime() { return cuda_built() ? engine().cuda_runtime() : ""; }

std::vector<GpuInfo> list_gpus() {
  return cuda_built() ? engine().list_gpus() : std::vector<GpuInfo>{};
}

std::string gpu_note() { return cuda_built() ? engine().gpu_note() : loaded().note; }

std::size_t gpu_free_bytes(int index) { return engine().gpu_free_bytes(index); }

bool gpu_is_started(int index) { return cuda_built() && engine().gpu_is_started(index); }

std::string peer_problem(const std::vector<int>& gpus) {
  return cuda_built() ? engine().peer_problem(gpus) : loaded().note;
}

int gpu_of(const void* p) { return engine().gpu_of(p); }

void set_kernel_compiler(const std::string& library, const std::vector<std::string>& caches,
                         const std::string& shipped) {
  if (cuda_built()) engine().set_kernel_compiler(library, caches, shipped);
}

void finish_compiling() {
  if (cuda_built()) engine().finish_compiling();
}

int ship_kernels(const std::string& architecture, const std::string& folder) {
  return engine().ship_kernels(architecture, folder);
}

bool kernels_compiled() { return cuda_built() && engine().kernels_compiled(); }

std::string kernel_compiler() { return cuda_built() ? engine().kernel_compiler() : ""; }

void start_nvshmem(const std::shared_ptr<Team>& team, const std::string& library, int gpu,
                   std::size_t bytes) {
  engine().start_nvshmem(team, library, gpu, bytes);
}

void await_nvshmem() {
  if (cuda_built()) engine().await_nvshmem();
}

std::unique_ptr<Prober> make_gpu_prober(const std::vector<int>& gpus, int blocks, int threads,
                                        std::int64_t bytes, ProbePlace place) {
  return engine().make_gpu_prober(gpus, blocks, threads, bytes, place);
}

std::unique_ptr<HostProduct> make_host_product(const std::vector<int>& gpus, int most_rows) {
  return engine().make_host_product(gpus, most_rows);
}

std::unique_ptr<HostWay> make_host_way(const HostWaySpec& spec) {
  return engine().make_host_way(spec);
}

std::unique_ptr<IpcMemory> make_ipc_memory(int gpu, std::int64_t bytes) {
  return engine().make_ipc_memory(gpu, bytes);
}

std::string make_shmem_way_id(const std::string& library) {
  return engine().make_shmem_way_id(library);
}

std::unique_ptr<GpuProgram> make_gpu_program(const GpuProgramSpec& spec) {
  return engine().make_gpu_program(spec);
}

std::unique_ptr<HostedProgram> make_hosted_program(const std::string& source, int kernels,
                                                   const std::vector<int>& devices,
                                                   std::size_t heap_bytes, int threads) {
  return engine().make_hosted_program(source, kernels, devices, heap_bytes, threads);
}

template <class T>
std::unique_ptr<System<T>> make_cuda_system(const CsrView<T>& matrix,
                                            std::span<const std::int32_t> part,
                                            std::span<const std::int32_t> order,
                                            const SystemSpec& spec) {
  return engine_for(spec.engine).of<T>().from_matrix(matrix, part, order, spec);
}

template <class T>
std::unique_ptr<System<T>> make_cuda_system(SlabPlan<T> slab, const SystemSpec& spec) {
  return engine_for(spec.engine).of<T>().from_slab(std::move(slab), spec);
}

template <class T>
std::unique_ptr<System<T>> make_cuda_system(const GivenCsr<T>& matrix, const SystemSpec& spec) {
  return engine_for(spec.engine).of<T>().from_given(matrix, spec);
}

template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                               const StencilRun& run, const Progress& progress) {
  return engine_for(spec.engine).of<T>().stencil(problem, spec, run, progress);
}

template StencilResult run_cuda_stencil(const StencilProblem<float>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template StencilResult run_cuda_stencil(const StencilProblem<double>&, const StencilSpec&,
                                        const StencilRun&, const Progress&);
template std::unique_ptr<System<float>> make_cuda_system(const GivenCsr<float>&, const SystemSpec&);
template std::unique_ptr<System<double>> make_cuda_system(const GivenCsr<double>&,
                                                          const SystemSpec&);
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
