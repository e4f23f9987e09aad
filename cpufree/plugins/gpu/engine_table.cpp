#include "cpufree/plugins/gpu/engine_table.hpp"

extern "C" const cpufree::GpuEngineTable* cpufree_gpu_engine() {
  using namespace cpufree;
  static constexpr GpuEngineTable table = {CPUFREE_VERSION,
                                           gpu_vendor,
                                           cuda_runtime,
                                           list_gpus,
                                           gpu_note,
                                           gpu_free_bytes,
                                           gpu_is_started,
                                           peer_problem,
                                           gpu_of,
                                           set_kernel_compiler,
                                           finish_compiling,
                                           kernels_compiling,
                                           kernel_seconds,
                                           ship_kernels,
                                           kernels_compiled,
                                           kernel_compiler,
                                           start_remote,
                                           await_remote,
                                           run_litmus,
                                           make_gpu_prober,
                                           make_host_product,
                                           make_host_way,
                                           make_ipc_memory,
                                           make_shmem_way_id,
                                           make_gpu_program,
                                           make_hosted_program,
                                           kGpuEngineOf<float>,
                                           kGpuEngineOf<double>};
  return &table;
}

const cpufree::GpuEngineTable& cpufree::gpu_engine() { return *cpufree_gpu_engine(); }
