// The GPU engine of a shared object next to this one, _gpu.so (engine_table.hpp says why).
#include <unistd.h>

#include <string_view>

#include "cpufree/base/shared_library.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"

namespace cpufree {

namespace {

struct Loaded {
  const GpuEngineTable* table = nullptr;
  std::string note;  // why there is no table
};

Loaded load() {
  const std::string path = path_of_part(reinterpret_cast<const void*>(&load), "_gpu.so");
  if (access(path.c_str(), F_OK) != 0)
    return {nullptr,
            "this build of cpufree has no GPU engine; build it on a machine with an NVIDIA GPU and "
            "the CUDA toolkit (nvcc), or with -C cmake.define.CPUFREE_CUDA=ON"};
  try {
    const SharedLibrary library(path.c_str(), "cpufree's GPU engine", "the one of the same build",
                                "install cpufree again");
    std::function<const GpuEngineTable*()> get;
    library.find("cpufree_gpu_engine", get);
    const GpuEngineTable* const table = get();
    if (std::string_view(table->version) == CPUFREE_VERSION) return {table, ""};
    return {nullptr, "cpufree's GPU engine is of version " + std::string(table->version) +
                         ", the rest of cpufree is " CPUFREE_VERSION ": install cpufree again"};
  } catch (const Unsupported& error) {
    return {nullptr, error.what()};
  }
}

const Loaded& loaded() {
  static const Loaded found = load();
  return found;
}

// Why there is no engine, to a caller who has given these arguments; one that names the engine
// could have named another one.
template <class... A>
std::string refusal(const A&... given) {
  std::string wanted;
  const auto look_at = [&](const auto& one) {
    if constexpr (requires { engine_name(one.engine); }) wanted = engine_name(one.engine);
  };
  (look_at(given), ...);
  if (wanted.empty()) return loaded().note;
  return "engine " + wanted + ": " + loaded().note + "; or use the engine cpu_threads";
}

template <class R, class... A>
using Function = R (*)(A...);

// What stands in the table where there is no engine: functions that refuse, ...
struct Refuses {
  template <class R, class... A>
  constexpr operator Function<R, A...>() const {
    return [](A... given) -> R { throw Unsupported(refusal(given...)); };
  }
};
// ... that have nothing to do or to return, ...
struct Nothing {
  template <class R, class... A>
  constexpr operator Function<R, A...>() const {
    return [](A...) -> R { return R(); };
  }
};
// ... and that say why.
struct Note {
  template <class... A>
  constexpr operator Function<std::string, A...>() const {
    return [](A...) { return loaded().note; };
  }
};

const GpuEngineTable& no_engine() {
  static constexpr GpuEngineTable table = {
      .version = "",
      .gpu_vendor = Nothing{},
      .cuda_runtime = Nothing{},
      .list_gpus = Nothing{},
      .gpu_note = Note{},
      .gpu_free_bytes = Refuses{},
      .gpu_is_started = Nothing{},
      .peer_problem = Note{},
      .gpu_of = Refuses{},
      .set_kernel_compiler = Nothing{},
      .finish_compiling = Nothing{},
      .kernels_compiling = Nothing{},
      .kernel_seconds = Nothing{},
      .ship_kernels = Refuses{},
      .kernels_compiled = Nothing{},
      .kernel_compiler = Nothing{},
      .start_remote = Refuses{},
      .await_remote = Nothing{},
      .run_litmus = Refuses{},
      .make_gpu_prober = Refuses{},
      .make_host_product = Refuses{},
      .make_host_way = Refuses{},
      .make_ipc_memory = Refuses{},
      .make_shmem_way_id = Refuses{},
      .make_gpu_program = Refuses{},
      .make_hosted_program = Refuses{},
      .in_float = {Refuses{}, Refuses{}, Refuses{}, Refuses{}, Refuses{}},
      .in_double = {Refuses{}, Refuses{}, Refuses{}, Refuses{}, Refuses{}},
  };
  return table;
}

}  // namespace

const GpuEngineTable& gpu_engine() {
  return loaded().table != nullptr ? *loaded().table : no_engine();
}

}  // namespace cpufree
