// Words of memory that streams wait for and write, without the host.
#pragma once

#include <cstdint>

#include "cpufree/gpu/stream.hpp"

namespace cpufree::gpu {

// What follows in the stream waits until the word is `value` or more.
inline void wait_for_word(const Stream& stream, const void* word, std::uint64_t value) {
  check_call(gpuStreamWaitWord(stream, word, value), "StreamWaitValue64");
}
// Once all that is before it in the stream is over.
inline void write_word(const Stream& stream, void* word, std::uint64_t value) {
  check_call(gpuStreamWriteWord(stream, word, value), "StreamWriteValue64");
}
// The same where the word may be one that streams do not reach: whether it could be queued.
inline bool try_write_word(const Stream& stream, void* word, std::uint64_t value) {
  if (gpuStreamWriteWord(stream, word, value) == gpuSuccess) return true;
  static_cast<void>(gpuGetLastError());
  return false;
}

}  // namespace cpufree::gpu
