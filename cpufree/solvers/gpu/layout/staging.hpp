// Copies between ordinary host memory and GPUs, through pinned buffers that all cores fill or empty
// while others are under way.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "cpufree/gpu/memory.hpp"

namespace cpufree {

struct StagedCopy {
  int device = 0;  // the side of it that is no host memory
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

// One call at a time.
class Staging {
 public:
  Staging();
  ~Staging();
  Staging(Staging&&) noexcept;

  // Does all of these copies, to GPUs or from them; when it returns they are there. Buffers stay
  // for the next call. Throws OutOfMemory, EngineError.
  void send(const std::vector<StagedCopy>& copies) { run(copies, true); }
  void fetch(const std::vector<StagedCopy>& copies) { run(copies, false); }

 private:
  class Worker;
  // Buffers in one allocation: for each of several, the driver has threads wait for one another.
  struct Workers {
    gpu::PinnedArray<std::byte> buffers;
    std::size_t part = 0;                       // bytes of each
    std::vector<std::unique_ptr<Worker>> each;  // made when they first work
  };
  void run(const std::vector<StagedCopy>& copies, bool to_device);
  Workers& workers_of(int device, std::size_t count, std::size_t part);

  std::map<int, Workers> workers_;  // of each device
};

// Does these copies through buffers that set-ups share, since to pin new ones takes milliseconds;
// while another thread uses them, through buffers of its own.
void send_staged(const std::vector<StagedCopy>& copies);
void fetch_staged(const std::vector<StagedCopy>& copies);

}  // namespace cpufree
