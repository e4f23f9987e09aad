// What a system takes of the memory of its GPUs, known before it is taken.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/solvers/gpu/place.hpp"

namespace cpufree {

template <class T>
struct HostLayout;
struct LevelsMemory;
template <class T>
struct PeFactors;

// What the GPU of a PE holds once it has solved, in bytes.
struct GpuMemory {
  double matrix = 0.0;   // in the format of GPUs, with what blocks know of their shares
  double vectors = 0.0;  // of the solve that is expected first, its right-hand side included
  double halo = 0.0;     // messages between blocks and PEs, and lists of what is sent
  double factors = 0.0;
  double levels = 0.0;  // of multigrid, with their vectors and messages
  double kept = 0.0;    // of these, what updates of values are made from
  double pages = 0.0;   // of the driver, that these leave unused
  // At most, at any time of the set-up, where there is room for the fastest one.
  double peak = 0.0;

  double all() const { return matrix + vectors + halo + factors + levels + kept + pages; }
};

// By the layout of a matrix of N rows: the PEs of this process. `levels` and `factors` are of the
// preconditioner, if there are any; `cuts`: rows of each GPU, where GPUs lay it out.
template <class T>
std::vector<GpuMemory> memory_of(const GpuPlace& place, const HostLayout<T>& layout,
                                 std::int64_t rows, const LevelsMemory& levels,
                                 std::span<const PeFactors<T>> factors,
                                 std::span<const std::int64_t> cuts = {});

// Of a matrix that is not set up, on GPUs of this kind. The host lays it out, and makes factors and
// levels. `free`: bytes of each GPU; 0: as many as it takes. Throws as make_system does.
template <class T>
std::vector<GpuMemory> estimate_memory(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                                       std::span<const std::int32_t> order, const SystemSpec& spec,
                                       const GpuFacts& gpu, double free = 0.0);

// What the GPU of each PE of a process holds at the least of a matrix with levels that have not
// been made: shares in the shortest codes, level 0, and vectors.
template <class T>
std::vector<GpuMemory> least_with_levels(const GpuPlace& place, const CsrView<T>& matrix);

// Bytes that levels take on each GPU, at most, where there is not much more than slices; pages of
// `page` bytes.
double most_of_levels(const multigrid::Hierarchy& hierarchy, const OwnPes& own, double page);

// Throws OutOfMemory where GPU k, `devices[k]` of which has `free[k]` bytes, lacks the room for
// `pes[k]`: how much of what is needed, and what would fit. Of PEs that share a GPU all are
// counted.
void require_memory(const GpuPlace& place, const std::vector<GpuMemory>& pes,
                    const std::vector<double>& free, std::size_t value_bytes);

}  // namespace cpufree
