// What a generated kernel gets from the host: plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/trace/record.hpp"

namespace cpufree::programs {

struct Args {
  // Extents, starts, strides, offsets in the heap, in the order in which the kernel takes them.
  const std::int64_t* numbers;
  // Scalars, eight bytes each.
  const std::int64_t* scalars;
  // What PE 0 tells: variables, then for each field the number of its storage.
  std::int64_t* results;
  // Of each PE: what went wrong (Fault) and the line of the program, 0 where all went well.
  std::int64_t* faults;
  const TraceRing* traces = nullptr;  // one per block of the PE; of a run that is traced
};

// The same for kernels of GPUs, of which each knows its numbers: scalars come with the launch.
template <int Scalars>
struct GridArgs {
  std::int64_t* results;
  std::int64_t* faults;  // two: of the first PE, which fails as all do
  std::int64_t scalars[Scalars];
};
// Of a run that is traced.
template <int Scalars>
struct TracedArgs : GridArgs<Scalars> {
  const TraceRing* traces;  // one per block of the PE
};

// For the kernels of a host-driven program: where one runs, and the values that the host has when
// it launches it.
inline constexpr int kMostHostedPes = 16;
struct HostedPlace {
  std::byte* heap;
  std::int64_t* faults;
  int pe, pes;
  std::byte* heaps[kMostHostedPes];  // of all PEs
};
template <int Fields, int Values>
struct HostedArgs {
  std::int64_t offsets[Fields];  // of fields, whose storage goes round
  std::int64_t values[Values];   // scalars, eight bytes each
};

// Which tiles of a sweep a block does: every N-th, or some that follow one another.
enum class TileOrder { strides, chunks };

// What of Python's rules a run has broken; compiler/faults.py says it in words.
enum class Fault : std::int64_t {
  none,
  overflow,
  division_by_zero,
  out_of_bounds,
  complex,
  domain,
  range,
  not_a_number,
  infinite,
  out_of_int32,
  negative_power
};

}  // namespace cpufree::programs
