// What the host takes from the rings of a launch. Plain data.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/trace/record.hpp"

namespace cpufree {

// The records of one thread of a block, in order of time. `written` is more than `kept` where the
// ring was too small: the first ones are lost.
struct TraceTrack {
  std::int32_t pe = 0;
  std::int32_t block = 0;
  std::int32_t thread = 0;
  std::uint64_t written = 0;
  std::uint64_t kept = 0;
};

struct TraceReport {
  std::vector<TraceTrack> tracks;
  std::vector<TraceRecord> records;   // track after track
  std::vector<std::uint64_t> bytes;   // of payload, from each PE (row after row) to each PE
  std::vector<std::uint64_t> starts;  // of each PE: what its clock showed at its time 0
};

// How large the rings of a launch are.
struct TraceShape {
  std::int32_t pes = 1;      // of all processes
  std::int32_t blocks = 1;   // of a PE
  std::int32_t threads = 1;  // of a block
  std::int32_t writers = 1;  // of these
  std::uint32_t capacity = 0;
  std::uint32_t kinds = kAllTraceKinds;
  std::uint32_t every = 1;  // iterations, of which one is recorded

  static TraceShape of(int pes, int blocks, int threads, int writers, std::int64_t events,
                       std::uint32_t kinds, std::int64_t every = 1) {
    const auto capacity =
        std::bit_ceil(static_cast<std::uint32_t>(std::max<std::int64_t>(events, kTraceShare)));
    return {pes, blocks, threads, writers, capacity, kinds, static_cast<std::uint32_t>(every)};
  }
  // Of one PE.
  std::size_t records() const {
    return static_cast<std::size_t>(blocks) * trace_first(capacity, writers);
  }
  std::size_t counts() const {
    return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(writers);
  }
  std::size_t bytes() const {
    return std::size_t{2} * static_cast<std::size_t>(blocks) * static_cast<std::size_t>(threads) *
           static_cast<std::size_t>(pes);
  }
};

// The rings of the blocks of one PE, in arrays of the sizes that `shape` says. `told`: as many as
// there are counts, in memory that hosts read; null: nobody does.
inline std::vector<TraceRing> trace_rings(const TraceShape& shape, TraceRecord* records,
                                          std::uint64_t* written, std::uint64_t* bytes,
                                          const std::byte* base, std::uint64_t start,
                                          Published* told) {
  std::vector<TraceRing> rings;
  for (std::int64_t block = 0; block < shape.blocks; ++block)
    rings.push_back(
        {told == nullptr ? nullptr : told + block * shape.writers,
         records + static_cast<std::uint64_t>(block) * trace_first(shape.capacity, shape.writers),
         written + block * shape.writers, bytes + 2 * block * shape.threads * shape.pes, base,
         start, shape.kinds, shape.capacity, shape.every});
  return rings;
}

// Adds what the blocks of PE `pe` have written into these arrays, once they are on the host.
inline void collect_trace(TraceReport& report, int pe, const TraceShape& shape,
                          std::span<const TraceRecord> records,
                          std::span<const std::uint64_t> written,
                          std::span<const std::uint64_t> bytes) {
  for (std::size_t ring = 0; ring < shape.counts(); ++ring) {
    const auto block = static_cast<std::int32_t>(ring) / shape.writers;
    const auto thread = static_cast<std::int32_t>(ring) % shape.writers;
    const std::uint64_t all = written[ring];
    const std::uint64_t room = trace_capacity(shape.capacity, thread);
    const std::uint64_t kept = std::min(all, room);
    if (all == 0) continue;
    report.tracks.push_back({pe, block, thread, all, kept});
    const std::uint64_t first =
        static_cast<std::uint64_t>(block) * trace_first(shape.capacity, shape.writers) +
        trace_first(shape.capacity, thread);
    for (std::uint64_t k = all - kept; k < all; ++k)
      report.records.push_back(records[first + (k & (room - 1U))]);
  }
  std::vector<std::uint64_t> row(static_cast<std::size_t>(shape.pes));
  for (std::size_t k = 0; k < bytes.size(); k += 2) row[k / 2 % row.size()] += bytes[k];
  report.bytes.insert(report.bytes.end(), row.begin(), row.end());
}

}  // namespace cpufree
