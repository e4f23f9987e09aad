// A trace of kernels of one's own that run on CPU threads, and the file that it is written to.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// The rings of all blocks of the PEs of this process, in its memory.
class HostTrace {
 public:
  // `heaps`: the symmetric memory of each PE of the process, the first of which is PE `first`.
  // `start`: the time of the port that is 0. `told`: see trace_rings; empty: of no PE.
  HostTrace(const TraceShape& shape, std::span<std::byte* const> heaps, std::uint64_t start,
            int first, std::span<Published* const> told = {})
      : shape_(shape), first_(first), pes_(heaps.size()) {
    for (std::size_t k = 0; k < pes_.size(); ++k) {
      Pe& p = pes_[k];
      p.records.resize(shape.records());
      p.written.resize(shape.counts());
      p.bytes.resize(shape.bytes());
      p.rings = trace_rings(shape, p.records.data(), p.written.data(), p.bytes.data(), heaps[k],
                            start, told.empty() ? nullptr : told[k]);
    }
  }

  // The process has all PEs.
  HostTrace(const TraceShape& shape, std::byte* const* heaps, std::uint64_t start)
      : HostTrace(shape, {heaps, static_cast<std::size_t>(shape.pes)}, start, 0) {}

  // For `run_traced`: of the k-th PE of the process.
  const TraceRing* rings(int k) const { return pes_[static_cast<std::size_t>(k)].rings.data(); }

  // Once all kernels have ended.
  TraceReport report() const {
    TraceReport all;
    for (std::size_t k = 0; k < pes_.size(); ++k)
      collect_trace(all, first_ + static_cast<int>(k), shape_, pes_[k].records, pes_[k].written,
                    pes_[k].bytes);
    all.starts.resize(pes_.size());
    return all;
  }

 private:
  struct Pe {
    std::vector<TraceRecord> records;
    std::vector<std::uint64_t> written, bytes;
    std::vector<TraceRing> rings;
  };
  TraceShape shape_;
  int first_;
  std::vector<Pe> pes_;
};

// Writes a file that `cpufree trace report` and cpufree.trace.load read: a line, the numbers of
// tracks, records and PEs, then tracks, records, bytes and starts, all in 64 bits. Throws
// InvalidInput where it cannot be written.
inline void write_trace(const TraceReport& report, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&](const void* from, std::size_t count) {
    file.write(static_cast<const char*>(from), static_cast<std::streamsize>(8 * count));
  };
  file << "cpufree trace 1\n";
  const std::uint64_t counts[3] = {report.tracks.size(), report.records.size(),
                                   report.starts.size()};
  put(counts, 3);
  for (const TraceTrack& t : report.tracks) {
    const std::int64_t row[3] = {t.pe, t.block, t.thread};
    const std::uint64_t records[2] = {t.written, t.kept};
    put(row, 3), put(records, 2);
  }
  put(report.records.data(), 2 * report.records.size());
  put(report.bytes.data(), report.bytes.size());
  put(report.starts.data(), report.starts.size());
  require(static_cast<bool>(file.flush()), "a trace cannot be written to '" + path + "'");
}

}  // namespace cpufree
