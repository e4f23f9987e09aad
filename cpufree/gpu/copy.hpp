// Copies and clears of memory that the caller owns. Copies take their direction from the addresses.
// `of`: more of what is copied, for an error, such as " of a vector".
#pragma once

#include <cstddef>

#include "cpufree/gpu/stream.hpp"

namespace cpufree::gpu {

// In the order of a stream of the device that is current; what is read must stay until it is there.
inline void copy(void* to, const void* from, std::size_t bytes, gpuStream_t stream,
                 const char* of = "") {
  check_call(gpuMemcpyAsync(to, from, bytes, gpuMemcpyDefault, stream), "MemcpyAsync", of);
}
// Rows of N bytes, of which each side has its own distance from one to the next.
inline void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                      std::size_t width, std::size_t rows, gpuStream_t stream) {
  check_call(
      gpuMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, gpuMemcpyDefault, stream),
      "Memcpy2DAsync");
}
inline void clear(void* p, std::size_t bytes, gpuStream_t stream) {
  check_call(gpuMemsetAsync(p, 0, bytes, stream), "MemsetAsync");
}
// Between two devices.
inline void copy_across(void* to, int to_device, const void* from, int from_device,
                        std::size_t bytes, gpuStream_t stream, const char* of = "") {
  if (bytes == 0) return;
  check_call(gpuMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream), "MemcpyPeerAsync",
             of);
}

// At once, by the host, on the default stream of the device that is current, for which no other
// stream waits. What that has to do before is waited for within a bound; the copy itself takes as
// long as its bytes, and CUDA has no way to give it up.
inline void wait_for_default_stream(int device) {
  wait_for_stream(device, nullptr, "copies of the default stream");
}
inline void copy_to_device(int device, void* to, const void* from, std::size_t bytes) {
  const OnDevice here(device);
  wait_for_default_stream(device);
  check_call(gpuMemcpy(to, from, bytes, gpuMemcpyDefault), "Memcpy", " to the device");
  wait_for_default_stream(device);
}
inline void copy_to_host(void* to, const void* from, std::size_t bytes) {
  wait_for_default_stream(current_device());
  check_call(gpuMemcpy(to, from, bytes, gpuMemcpyDefault), "Memcpy", " to the host");
}
inline void clear(int device, void* p, std::size_t bytes) {
  const OnDevice here(device);
  check_call(gpuMemset(p, 0, bytes), "Memset");
  wait_for_default_stream(device);
}

}  // namespace cpufree::gpu
