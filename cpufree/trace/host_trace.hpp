// A trace of kernels of one's own that run on CPU threads, and the file that it is written to.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

// The rings of all blocks of all PEs of this process, in its memory.
class HostTrace {
 public:
  // `heaps`: the symmetric memory of each PE. `start`: the time of the port that is 0.
  HostTrace(const TraceShape& shape, std::byte* const* heaps, std::uint64_t start)
      : shape_(shape), pes_(static_cast<std::size_t>(shape.pes)) {
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
      Pe& p = pes_[pe];
      p.records.resize(shape.records());
      p.written.resize(shape.counts());
      p.bytes.resize(shape.bytes());
      p.rings =
          trace_rings(shape, p.records.data(), p.written.data(), p.bytes.data(), heaps[pe], start);
    }
  }

  // For `run_traced`, of one PE.
  const TraceRing* rings(int pe) const { return pes_[static_cast<std::size_t>(pe)].rings.data(); }

  // Once all kernels have ended.
  TraceReport report() const {
    TraceReport all;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe)
      collect_trace(all, static_cast<int>(pe), shape_, pes_[pe].records, pes_[pe].written,
                    pes_[pe].bytes);
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
