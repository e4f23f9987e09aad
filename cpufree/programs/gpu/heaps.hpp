// The memory of a program's PEs on GPUs, and copies between it and arrays of the caller.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/heaps.hpp"
#include "cpufree/programs/gpu/program.hpp"

namespace cpufree {

class ProgramHeaps {
 public:
  ProgramHeaps(const std::vector<int>& devices, std::size_t bytes)
      : devices_(devices), bytes_(bytes), heaps_(devices, bytes) {
    for (const int device : devices) streams_.emplace_back(device);
  }

  std::byte* base(std::size_t pe) const { return heaps_.base(static_cast<int>(pe)); }
  const gpu::Stream& stream(std::size_t pe) const { return streams_[pe]; }
  const std::vector<gpu::Stream>& streams() const { return streams_; }

  // Zeros everywhere; then these rows.
  void load(const std::vector<GpuProgramCopy>& copies) const {
    for (std::size_t pe = 0; pe < devices_.size(); ++pe) {
      const gpu::OnDevice here(devices_[pe]);
      gpu::clear(base(pe), bytes_, streams_[pe]);
      for (const GpuProgramCopy& c : copies)
        if (of(c, pe)) move(base(pe) + c.offset, c.pitch, c.array, c.array_pitch, c, streams_[pe]);
    }
    drain(gpu::kCopyLimit, "loading the arrays of a program");
  }
  void store(const std::vector<GpuProgramCopy>& copies) const {
    for (std::size_t pe = 0; pe < devices_.size(); ++pe) {
      const gpu::OnDevice here(devices_[pe]);
      for (const GpuProgramCopy& c : copies)
        if (of(c, pe)) move(c.array, c.array_pitch, base(pe) + c.offset, c.pitch, c, streams_[pe]);
    }
    drain(gpu::kCopyLimit, "storing the arrays of a program");
  }
  void drain(double seconds, const char* what) const {
    for (const gpu::Stream& stream : streams_) stream.drain(gpu::Deadline(seconds), what);
  }

 private:
  bool of(const GpuProgramCopy& c, std::size_t pe) const {
    if (at(c.pe) != pe || c.width == 0 || c.rows == 0) return false;
    require(c.offset + c.pitch * (c.rows - 1) + c.width <= bytes_, "rows lie in the heap");
    return true;
  }
  // Rows without gaps on either side are one copy: distances of rows have a limit, sizes have none.
  static void move(std::byte* to, std::size_t to_pitch, const std::byte* from,
                   std::size_t from_pitch, const GpuProgramCopy& c, gpuStream_t stream) {
    if (c.rows == 1 || (to_pitch == c.width && from_pitch == c.width))
      gpu::copy(to, from, c.width * c.rows, stream, " of a program's array");
    else
      gpu::copy_rows(to, to_pitch, from, from_pitch, c.width, c.rows, stream);
  }

  std::vector<int> devices_;
  std::size_t bytes_;
  GpuHeaps heaps_;
  std::vector<gpu::Stream> streams_;
};

// The GPUs of a program, which reach one another. Throws Unsupported.
std::vector<int> devices_of_program(const std::vector<int>& devices);

}  // namespace cpufree
