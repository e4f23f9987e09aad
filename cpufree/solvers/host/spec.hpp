// What a user asks for. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/base/machine.hpp"
#include "cpufree/device/study.hpp"
#include "cpufree/distributed/team.hpp"
#include "cpufree/launch/engine.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/multigrid/near_null_space.hpp"
#include "cpufree/solvers/method.hpp"

namespace cpufree {

// Which preconditioner of entries of its own (factored.hpp, multigrid/) is set up along with the
// matrix.
struct FactorSpec {
  Preconditioner kind = Preconditioner::none;  // none, fsai or amg
  int level = 1;                               // fsai: pattern of A, or of A^2
  // fsai: G as it is given, to be scaled by the roots of the diagonal; none: it is made of A.
  std::shared_ptr<const multigrid::SparseMatrix> given = nullptr;
  // amg: what coarse levels have to represent; none: the constant.
  std::shared_ptr<const multigrid::NearNullSpace> near = nullptr;
  // amg: those of levels from outside, the finest first; none: they are made.
  std::shared_ptr<const std::vector<multigrid::SparseMatrix>> prolongators = nullptr;

  // Whether there are factors.
  bool any() const { return kind == Preconditioner::fsai; }
  // Whether GPUs make them, where they lay the matrix out.
  bool by_gpus() const { return any() && level == 1 && !given; }
  // amg: rows of a level up to which all PEs have all of it; -1: as many as the engine likes.
  std::int32_t gathered = -1;
  bool multigrid() const { return kind == Preconditioner::amg; }
};

struct SolveSpec {
  Method method = Method::prcg;
  Preconditioner preconditioner = Preconditioner::jacobi;
  double rtol = 1e-5;
  double atol = 0.0;
  std::int64_t maxiter = 0;  // 0: none, the initial residual is judged
  double time_limit = 0.0;   // seconds, 0: none
  double wait_limit = 60.0;  // seconds that a block may wait for another one
  std::int32_t replace_every = 50;
  std::int32_t chebyshev_degree = 4;
  // But for `trace`, double precision without a preconditioner alone. Studies that leave something
  // out run for `maxiter` iterations exactly, with rtol and atol 0; x and norms mean nothing.
  Study study = Study::none;
  TraceSpec trace = {};  // of the study of that name
  bool gather = true;    // with a team: rank 0 gets all of x; else each rank has its own rows alone

  bool leaves_out() const { return study == Study::no_compute || study == Study::no_comm; }
  Limits limits() const { return {time_limit, wait_limit}; }
};

// Of a solve of `rows` rows whose caller leaves maxiter open.
inline std::int64_t iterations_without_limit(std::int32_t rows) { return std::int64_t{10} * rows; }

struct SystemSpec {
  Engine engine = Engine::cpu_threads;
  int pes = 1;
  int blocks = 0;  // per PE; 0: as many as there are cores or multiprocessors for
  // cuda_p2p: the device of each PE; empty: 0, 1, ... nvshmem, nccl: the one of this process.
  std::vector<int> gpus = {};
  std::shared_ptr<Team> team = nullptr;  // cpu_processes, nvshmem, nccl: as many members as PEs
  // nvshmem, nccl: path of the library, empty: where the system looks; path of the kernels that
  // call it, empty: none.
  std::string remote_library = {};
  std::string remote_kernels = {};
  // nvshmem, nccl: whether PEs are on several machines, so that it is asked which PEs are a node.
  bool several_machines = false;

  FactorSpec factors = {};

  // Rows 2 k and 2 k + 1 are real and imaginary part of a complex unknown, and an entry a + b i is
  // given as a at (2 i, 2 j) and b at (2 i + 1, 2 j + 1). Both rows of a pair are on one PE, one
  // after the other.
  bool pairs = false;

  // On GPUs: the solve that is expected first, of which method and preconditioner count. Its
  // kernels are compiled beside the set-up, and the plan tells what it keeps on chip.
  SolveSpec first = {};

  // Double precision: products read values in single precision, and all that says how near x is to
  // the solution reads them as they are.
  bool single_values = false;

  Machine machine = {};  // by whose numbers GPUs lay the matrix out

  // Treats every `node_size` consecutive PEs as a machine of their own, whose memory loads and
  // stores of other PEs do not reach. 0: nodes as they are.
  int node_size = 0;

  // For experiments. The defaults leave the choice to the engine.
  int threads = 0;  // per block, cuda_p2p: a multiple of 32; 0: by the rows of a block
  // How ghosts travel: 0 stores, 1 packets, 2 packets among the blocks of a PE as well (cuda_p2p),
  // -1 by their number and the size of blocks.
  int halo = -1;
  int residency = -1;   // cuda_p2p, kept on chip: 0 nothing, 1 vectors only, -1 what fits
  int ring = -1;        // cuda_p2p: slots of the rings through which a matrix comes; 0: none
  int lanes_log2 = -1;  // cuda_p2p: 2^lanes_log2 threads share a row
  int compress = -1;    // cuda_p2p: 0 keeps columns and values as they are
  int layout = -1;      // cuda_p2p: who lays large matrices out: 0 the host, 1 the GPUs
  // cuda_p2p: GPUs lay the matrix out, and look at its entries as well (PlanReport::entries). Where
  // it is the host that should, or conjugate gradients cannot have the matrix, the system is not
  // set up, and says why (PlanReport::refused).
  bool inspect = false;
};

// Names as users write them. Throw InvalidInput that lists the valid ones.
Method method_from_name(const std::string& name);
Preconditioner preconditioner_from_name(const std::string& name);

// Whether it has factors of its own, which are set up along with the matrix.
inline bool has_factors(Preconditioner preconditioner) { return FactorSpec{preconditioner}.any(); }
// Whether it is set up along with the matrix: it has factors, or a hierarchy.
inline bool set_up_with_matrix(Preconditioner preconditioner) {
  return has_factors(preconditioner) || preconditioner == Preconditioner::amg;
}
const char* method_name(Method method);
const char* preconditioner_name(Preconditioner preconditioner);
// "CONVERGED_RTOL" and so on.
const char* reason_name(Reason reason);

// Whether node_size makes several nodes of the PEs.
inline bool in_nodes(const SystemSpec& spec) {
  return spec.node_size > 0 && spec.node_size < spec.pes;
}

// Throws InvalidInput where a number is out of its range.
void check(const SystemSpec& spec);
void check(const SolveSpec& spec);
void check(const FactorSpec& factors);

}  // namespace cpufree
