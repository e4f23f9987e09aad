// Libraries that give PEs in processes of their own memory which they reach together, and that send
// between nodes: NVSHMEM (nvshmem/), NCCL (nccl/). Loaded at run time: without them,
// everything else works. One process is one PE. Kernels get addresses of one another's memory; only
// those for GPUs in several nodes call the library themselves (calls.cuh).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

namespace cpufree::remote {

using Id = std::array<char, 128>;  // of all processes that start together

struct Library {
  std::string name;             // as users know it
  std::function<Id()> make_id;  // one process for all; it must then start as rank 0
  // With the GPU of this PE current; returns when all PEs have called it. Throws Unsupported,
  // EngineError.
  std::function<void(int rank, int size, const Id&)> start;
  // Memory on the GPU that is current, of the same size on all PEs, which all ask for together.
  // Null where there is no room.
  std::function<void*(std::size_t)> allocate;
  // Once all have got it: makes it symmetric, together. Throws Unsupported, EngineError.
  std::function<void(void*, std::size_t)> share;
  // The address of a symmetric object on another PE, null where loads and stores do not reach that.
  std::function<void*(const void*, int)> address;
  // Readies a library of kernels (gpuLibrary_t) that call this one, once that has started; all PEs
  // together. Throws Unsupported, EngineError.
  std::function<void(void*)> ready;
  // Bytes of symmetric memory that the user lets a GPU have.
  std::function<std::size_t()> most_memory;
  std::string more_room;  // what the user can do to get more of it, with ", or " behind; or ""
  std::string version;
  std::string path;  // where it was found
};

// The library of an engine, "nvshmem" or "nccl", from `path` if that is not empty, else from where
// the system looks. Where it takes its memory at its start, that will be `bytes`. Throws
// Unsupported, which says where it was looked for.
struct Choice {
  std::string engine;
  std::string path;
};
Library load(const Choice& choice, std::size_t bytes);

}  // namespace cpufree::remote
