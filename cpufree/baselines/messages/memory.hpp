// Where the values of MPI's messages lie, and what has to be done for MPI to reach them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace cpufree::baselines {

class MessageMemory {
 public:
  virtual ~MessageMemory() = default;
  // What MPI is given.
  virtual char* source() = 0;
  virtual char* target() = 0;
  // Before a send of N bytes at a place of the source, and after a receive into the target.
  virtual void before_send(std::int64_t place, std::int64_t bytes) = 0;
  virtual void after_receive(std::int64_t place, std::int64_t bytes) = 0;
  // All values of the source; those of the target, which are cleared.
  virtual void fill(double value) = 0;
  virtual void take(double* values, std::int64_t count) = 0;
};

// kind: host; staged: of a GPU, copied to pinned memory of the host and from there; direct: of a
// GPU, whose addresses MPI takes. Throws InvalidInput; Unsupported where this build has no GPUs.
std::unique_ptr<MessageMemory> make_message_memory(const std::string& kind, int gpu,
                                                   std::int64_t bytes);
std::unique_ptr<MessageMemory> make_host_message_memory(std::int64_t bytes);

}  // namespace cpufree::baselines
