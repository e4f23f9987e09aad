// What the GPU engine does. The rest of the program, which may be without one, calls it through the
// table of engine_table.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/remote/library.hpp"

namespace cpufree {

// A GPU that the engine can use: compute capability 8.0 or newer, cooperative launch. `index` is
// CUDA's number, after CUDA_VISIBLE_DEVICES.
struct GpuInfo {
  int index = 0;
  std::string name;
  std::size_t memory_bytes = 0;
  int multiprocessors = 0;
  int major = 0, minor = 0;  // compute capability
  std::string kind;          // what kernels are made for where that does not say it: "gfx942"
  std::size_t l2_bytes = 0;
  std::string uuid;  // in hexadecimal: no other GPU of any machine has it
};

// Whose GPUs the engine of this build is for, "NVIDIA" or "AMD"; "" in the table of a build
// without.
std::string gpu_vendor();
// The version of the vendor's runtime that this build was made with, such as 13.0.
std::string cuda_runtime();
// The GPUs there are; empty where there is no driver. Never throws, and starts nothing on the GPUs.
std::vector<GpuInfo> list_gpus();
// Why `list_gpus` is empty; "" where it is not.
std::string gpu_note();
// Memory of a GPU that is free now. Starts CUDA on that GPU. Throws Unsupported, EngineError.
std::size_t gpu_free_bytes(int index);
// Whether CUDA runs on a GPU in this process, so that its start costs nothing more. Starts nothing;
// false where the driver does not tell.
bool gpu_is_started(int index);
// "" where all of them reach one another's memory, with native atomics; else a sentence that names
// the first pair that does not.
std::string peer_problem(const std::vector<int>& gpus);
// The GPU that holds the object at `p`. Throws InvalidInput where no GPU does.
int gpu_of(const void* p);

// Where kernels that are not built in come from (launch/gpu/compiled), which those of programs
// never are: the compiler's library, "" for one that the system finds; the folders that keep what
// was compiled (CodeCache), and the one of kernels that came with the package, "" for none. To be
// called before the first system is made.
void set_kernel_compiler(const std::string& library, const std::vector<std::string>& caches,
                         const std::string& shipped);
// Waits for kernels that are compiled ahead, a minute at most, and begins no more: to be called
// before the process ends, since the compiler's library must not end beneath them.
void finish_compiling();
// How many kernels are compiled right now; seconds in which any thread has waited for one until
// now.
int kernels_compiling();
double kernel_seconds();
// Makes the kernels of usual solves for an architecture ("sm_90"), in a folder for those that come
// with the package. No GPU is needed. Returns how many. Throws Unsupported where kernels are built
// in, or there is no compiler; EngineError.
int ship_kernels(const std::string& architecture, const std::string& folder);
// Whether kernels are compiled when they are first used, on this machine.
bool kernels_compiled();
// Name, version and path of their compiler, "" where kernels are built in. Throws Unsupported where
// it is missing or too old.
std::string kernel_compiler();

// Starts a library in this process, with room for `bytes`, unless it runs; all members of the team
// call it together. It goes on in a thread of its own while the caller prepares what needs it: a
// system, which waits for its end. `await_remote` does so too, and is to be called in any case
// before the process ends. Both throw Unsupported, EngineError.
void start_remote(const std::shared_ptr<Team>& team, const remote::Choice& library, int gpu,
                  std::size_t bytes);
void await_remote(const std::string& engine);

}  // namespace cpufree
