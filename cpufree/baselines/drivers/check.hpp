// What a baseline asks of the machine, and of the options.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cpufree/baselines/comm/comm.hpp"
#include "cpufree/baselines/drivers/solvers.hpp"
#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/nccl_library.hpp"
#include "cpufree/baselines/product.hpp"

namespace cpufree::baselines {

// A kind as the rest of the program knows it.
struct KindInfo {
  const char* name;
  bool several;  // GPUs
  bool peers;    // they reach one another's memory
  bool nccl;
  bool only_cg;
  const char* needs;
};
inline constexpr KindInfo kKinds[] = {
    {"single_gpu", false, false, false, false, ""},
    {"single_gpu_textbook", false, false, false, true, ""},
    {"peer_copy", true, true, false, false, "GPUs that reach one another's memory"},
    {"nccl", true, false, true, false, "NCCL (libnccl.so.2)"},
    {"nccl_graph", true, false, true, false, "NCCL (libnccl.so.2)"},
    {"graph_while", true, true, false, false, "GPUs that reach one another's memory"},
    {"nvshmem_on_stream", true, false, false, false, "NVSHMEM (libnvshmem_host.so.3)"},
};

// The kind of this name. Throws InvalidInput, which says what they are and names all of them.
template <class Kind, std::size_t N>
const Kind& find_kind(const Kind (&kinds)[N], const std::string& name, const std::string& what) {
  std::string known;
  for (const Kind& kind : kinds) {
    if (name == kind.name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw InvalidInput("unknown " + what + " '" + name + "'; choose one of: " + known);
}

inline const KindInfo& kind_info(const std::string& name) {
  return find_kind(kKinds, name, "baseline");
}

inline int count_gpus() {
  int count = 0;
  if (gpuGetDeviceCount(&count) == gpuSuccess) return count;
  static_cast<void>(gpuGetLastError());
  return 0;
}

// Completes a kind with its state on this machine.
inline BaselineKind kind_here(BaselineKind kind, bool nccl, const std::string& nccl_library) {
  if (count_gpus() == 0) {
    kind.why_not = "there is no GPU that this process can use";
  } else if (nccl) {
    try {
      static_cast<void>(load_collectives(nccl_library));
    } catch (const Unsupported& error) {
      kind.why_not = error.what();
    }
  }
  kind.available = kind.why_not.empty();
  return kind;
}

// The GPU of each PE; `wanted`: empty for the first ones.
inline std::vector<int> gpus_of(const std::string& kind, int pes, const std::vector<int>& wanted) {
  const int count = count_gpus();
  if (count == 0)
    throw Unsupported("baseline " + kind +
                      ": there is no GPU that this process can use; see nvidia-smi -L, and the "
                      "environment variable CUDA_VISIBLE_DEVICES");
  std::vector<int> gpus = wanted;
  for (int k = 0; wanted.empty() && k < pes; ++k) gpus.push_back(k);
  require(gpus.size() == at(pes), "one GPU for each PE: " + std::to_string(gpus.size()) +
                                      " GPUs were named for " + std::to_string(pes) + " PEs");
  for (const int gpu : gpus) {
    require(gpu >= 0 && gpu < count, "GPU " + std::to_string(gpu) + " was asked for, but there " +
                                         (count == 1 ? "is 1" : "are " + std::to_string(count)) +
                                         ", numbered from 0; use fewer PEs, or name GPUs that "
                                         "exist");
    require(std::ranges::count(gpus, gpu) == 1,
            "GPU " + std::to_string(gpu) + " is named twice: a PE needs a GPU of its own");
  }
  return gpus;
}

// Throws Unsupported where a GPU cannot reach the memory of another one.
inline void check_reach(int from, int to, const std::string& kind) {
  if (!gpu::reaches(from, to))
    throw Unsupported("baseline " + kind + ": GPU " + std::to_string(from) +
                      " cannot address the memory of GPU " + std::to_string(to) +
                      "; nvidia-smi topo -m shows which are linked, and the baseline nccl does "
                      "without");
}

// Lets all GPUs reach one another's memory. Throws Unsupported where they cannot.
inline void connect(const std::vector<int>& gpus, const std::string& kind) {
  for (const int from : gpus) {
    const OnDevice here(from);
    for (const int to : gpus) {
      if (from == to) continue;
      check_reach(from, to, kind);
      gpu::reach(to);
    }
  }
}

inline void check_spec(const BaselineSpec& spec, const KindInfo& kind) {
  const int most = kind.several ? kMaxPes : 1;
  require(spec.pes >= 1 && spec.pes <= most,
          "baseline " + spec.kind + " runs on " +
              (most == 1 ? "one GPU" : "1 to " + std::to_string(most) + " GPUs") + "; pes is " +
              std::to_string(spec.pes));
  if (spec.preconditioner == Preconditioner::chebyshev)
    throw Unsupported("the baselines have the preconditioners none and jacobi, not chebyshev");
  std::string names = "auto";
  for (const char* name : kSpmvNames) names += std::string(", ") + name;
  require(spec.spmv == "auto" || std::ranges::find(kSpmvNames, spec.spmv) != kSpmvNames.end(),
          "unknown spmv '" + spec.spmv + "'; choose one of: " + names);
  require(spec.unroll >= 2 && spec.unroll <= 1024 && spec.unroll % 2 == 0,
          "unroll must be an even number from 2 to 1024, not " + std::to_string(spec.unroll));
  require(spec.lag >= 1 && spec.lag <= 64,
          "lag must lie between 1 and 64 iterations, not " + std::to_string(spec.lag));
  require(spec.wait_limit > 0.0 && spec.wait_limit <= 1e6,
          "wait_limit must lie between 0 (excluded) and 1e6 seconds: every wait is bounded");
  require(!spec.gpu_aware || spec.kind == "mpi",
          "gpu_aware is an option of the baseline mpi, not of " + spec.kind);
}

inline Variant variant_of(const std::string& name) {
  if (name == "full") return Variant::full;
  if (name == "no-compute") return Variant::no_compute;
  if (name == "no-comm") return Variant::no_comm;
  throw InvalidInput("unknown variant '" + name + "'; choose one of: full, no-compute, no-comm");
}

inline void check_solve(const BaselineSolve& how, const KindInfo& kind) {
  if (kind.only_cg && how.method != Method::cg)
    throw Unsupported(std::string("baseline ") + kind.name + " has the method cg alone");
  const Variant variant = variant_of(how.variant);
  if (kind.only_cg && variant != Variant::full)
    throw Unsupported(std::string("baseline ") + kind.name + " has the variant full alone");
  if (!kind.several && variant == Variant::no_compute)
    throw Unsupported(std::string("baseline ") + kind.name +
                      ": nothing is left of it without computing");
  require(how.rtol >= 0.0 && how.rtol < 1e300,
          "rtol must be a finite number >= 0, not " + std::to_string(how.rtol));
  require(how.max_iterations >= 0, "max_iterations must not be negative");
  require(variant == Variant::full || how.exact_iterations >= 0,
          "the variant " + how.variant +
              " computes no residual that could end it: give exact_iterations");
}

inline constexpr const char* kBusyAdvice =
    ", and its GPUs may still be busy; make another one, in another process if that fails too";

// What run() returns. After an EngineError nothing is run any more: `advice` says what to do.
template <class F>
auto run_unless(bool& broken, const char* advice, F&& run) {
  if (broken) throw EngineError(std::string("this baseline failed before") + advice);
  try {
    return run();
  } catch (const EngineError&) {
    broken = true;
    throw;
  }
}

}  // namespace cpufree::baselines
