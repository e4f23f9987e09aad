// Jacobi iterations on a grid: from what is asked for to the result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpufree/base/machine.hpp"
#include "cpufree/device/study.hpp"
#include "cpufree/distributed/team.hpp"
#include "cpufree/launch/engine.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/problem/grid.hpp"
#include "cpufree/stencils/args.hpp"
#include "cpufree/stencils/host/grid_values.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// How the blocks of a GPU hold their tiles and compute them. Specialized blocks
// (stencils/host/specialized_plan.hpp) are there to compare with, and never chosen by themselves.
enum class Sweep : std::uint32_t {
  automatic,
  wavefront,
  registers_3d,
  time_tiles,
  specialized_blocks
};

struct StencilSpec {
  Engine engine = Engine::cpu_threads;
  int pes = 1;
  int blocks = 0;  // per PE; 0: as many as there are cores or multiprocessors for
  // cuda_p2p: the device of each PE; empty: 0, 1, ... nvshmem, nccl: the one of this process.
  std::vector<int> gpus = {};
  std::shared_ptr<Team> team = nullptr;  // cpu_processes, nvshmem, nccl: as many members as PEs
  std::string remote_library = {};       // nvshmem, nccl: its path; empty: where the system looks
  Machine machine = {};                  // by whose numbers GPUs divide the grid
  int cores = 0;                         // for all PEs of the CPU engine; 0: those of this process
  int layers = 0;  // iterations from one exchange to the next; 0: chosen by a model

  // For experiments. The defaults leave the choice to the engine.
  int thickness = 0;  // planes between two block barriers; 0: automatic
  // How the halos of the wavefront travel: 1 packets, 0 values and flags, -1 by their size. With 0
  // there are no tiles in registers, which exchange packets.
  int halo = -1;
  Sweep sweep = Sweep::automatic;  // of the GPU engine; the others have the wavefront
  int rows = 0;                    // planes of a thread, in 3-D tiles; 0: automatic

  // Specialized blocks: how many have the points that one other PE needs; 0: in proportion to
  // these.
  int boundary_blocks = 0;

  // What leaves something out: no_compute or no_comm, without a source term or a tolerance. Values
  // mean nothing then. Or trace.
  Study study = Study::none;
  TraceSpec trace = {};
};

struct StencilRun {
  std::int64_t iterations = 0;
  double tolerance = -1.0;       // stop where no point changes by more; negative: never
  std::int64_t check_every = 0;  // iterations between checks; 0: automatic
  Limits limits;
  bool gather = true;  // with a team: rank 0 gets all of the result; else each has its own part
};

// The first values; the source term (empty: none); and where the result goes, in the order of the
// grid's axes, which may be where the first values are.
template <class T>
struct StencilProblem {
  Grid grid;
  GridValues<T> start, source;
  std::span<T> out;
  // In place of `out`, and always with a team: gives memory for the values of a box, which is asked
  // for once.
  std::function<T*(const GridSpan&)> room = {};
};

// How a grid lies on the PEs.
struct StencilPlan {
  std::string engine;
  Division division;
  int pes = 1, blocks = 1;  // that work
  int threads = 1;          // per block
  int layers = 1, thickness = 1;
  std::int64_t check_every = 1;
  std::int64_t tile_points = 0;     // of the largest tile
  std::int64_t halo_points = 0;     // that all tiles receive in an exchange
  std::int64_t pe_halo_points = 0;  // those that come from another PE
  std::string halo = "none";        // "packets", "values"
  std::string sweep = "wavefront";  // "registers_3d", "time_tiles", "specialized_blocks"
  int columns = 0, rows = 0;        // of a thread, in 3-D tiles; rows: planes
  bool in_fast_memory = false;      // tiles stay on chip
  std::int64_t fast_bytes = 0;      // of a block, that they take there
  int boundary_blocks = 0;          // specialized, the first ones of `blocks`
};

struct StencilResult {
  StencilOutcome outcome;
  double update = 0.0;   // largest change of a point in the iteration last measured
  double seconds = 0.0;  // from the launch of the kernels to the end of the last one
  StencilPlan plan;
  std::optional<TraceReport> trace = {};  // of all PEs; of a run that is traced
};

// Runs `run.iterations` iterations, or fewer. `progress` gets the iteration and the root mean
// square of its updates. Throws InvalidInput, Unsupported, WaitTimeout, EngineError, and what
// `progress`, the functions of the problem and the team throw.
//
// With a team all members call it together, for the same problem. Each asks for the values that its
// PE stores, and room for those that it owns; rank 0 for all, where they are gathered.
template <class T>
StencilResult run_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                          const StencilRun& run, const Progress& progress);

// The same by the serial reference, to compare with. Throws InvalidInput.
template <class T>
void run_reference(const StencilProblem<T>& problem, std::int64_t iterations);

// Throws InvalidInput for a name that is none.
Sweep sweep_from_name(const std::string& name);

// "CONVERGED_ITS" and so on.
const char* reason_name(StencilReason reason);

}  // namespace cpufree
