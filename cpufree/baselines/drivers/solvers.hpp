// Host-driven counterparts of the solvers: the same recurrences, driven by the CPU. See
// docs/design/baselines.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpufree/problem/csr.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// What kinds there are, and whether this machine can run them.
struct BaselineKind {
  std::string name;
  std::vector<std::string> methods;
  std::string needs;  // besides a GPU
  bool available = false;
  std::string why_not;  // "" where it is available
};

struct BaselineSpec {
  std::string kind;
  int pes = 1;
  std::vector<int> gpus = {};  // the device of each PE; empty: 0, 1, ...
  Preconditioner preconditioner = Preconditioner::jacobi;  // or none
  // Options. The defaults are what a user of the library would get.
  std::string spmv = "auto";      // or a name of kSpmvNames: the fastest is found by trial
  bool threads = true;            // nccl: a thread for each GPU; false: one for all
  int unroll = 4;                 // nccl_graph: iterations in a graph, even
  int lag = 2;                    // iterations that are launched before a residual is looked at
  double wait_limit = 60.0;       // seconds
  std::string nccl_library = "";  // path; empty: where the system finds it
  std::string nvshmem_library = "";
  // mpi: whether it is given addresses of GPU memory; not set: if it says that it takes them.
  std::optional<bool> gpu_aware = {};
  // nvshmem_on_stream: this process is PE `rank` of those that have the same id (make_shmem_id).
  int rank = 0;
  std::string nvshmem_id = "";
};

struct BaselineSolve {
  Method method = Method::cg;
  std::string variant = "full";  // no-compute, no-comm
  double rtol = 1e-5;
  std::int64_t max_iterations = 0;
  std::int64_t exact_iterations = -1;  // not negative: exactly these, whatever the residual
};

struct BaselineResult {
  double seconds = 0.0;  // from the first launch to the end of the last kernel
  std::int64_t iterations = 0;
  std::string reason;     // "CONVERGED_RTOL" and so on; CONVERGED_ITS after exact_iterations
  double residual = 0.0;  // norm of the recurrence's
};

struct BaselineFacts {
  std::string kind;
  int pes = 1;
  std::string staging;  // of halos: "none", "peer", "host"
  std::string spmv;
  std::vector<std::pair<std::string, double>> spmv_seconds;  // of the trials, slowest PE
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<std::string> notes;
  double setup_seconds = 0.0;
};

template <class T>
class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual std::int32_t rows() const = 0;  // of the matrix
  virtual const BaselineFacts& facts() const = 0;
  // Solves A x = b from x = 0, in host memory; x may be empty: then it is not copied; where a PE is
  // a process (nvshmem_on_stream), its own rows are written alone. Throws InvalidInput,
  // Unsupported, EngineError. After an EngineError nothing more can be solved.
  virtual BaselineResult solve(std::span<const T> b, std::span<T> x, const BaselineSolve& how) = 0;
};

// NVSHMEM, for the kind nvshmem_on_stream: its version, and the id by which its processes find one
// another, in hexadecimal; its maker is PE 0. Both throw Unsupported where it is not found.
// `library` is a path, or empty: where the system finds it.
std::string shmem_version(const std::string& library);
std::string make_shmem_id(const std::string& library);

// All kinds, with their state on this machine, except NVSHMEM, which is not looked for here.
std::vector<BaselineKind> baseline_kinds(const std::string& nccl_library);

// Lays the matrix out. `part` and `order` as in make_system. Throws InvalidInput, Unsupported (with
// what is missing), OutOfMemory, EngineError. nvshmem_on_stream: returns when all processes have
// made theirs, of the same problem; its memory is free again when the process ends.
template <class T>
std::unique_ptr<Baseline<T>> make_baseline(const CsrView<T>& matrix,
                                           std::span<const std::int32_t> part,
                                           std::span<const std::int32_t> order,
                                           const BaselineSpec& spec);

}  // namespace cpufree
