// Copies from ordinary host memory to GPUs, through pinned buffers that all cores fill.
#pragma once

#include <cstddef>
#include <vector>

namespace cpufree {

struct StagedCopy {
  int device = 0;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

// Does all of them; when it returns they are there. Throws OutOfMemory, EngineError.
void copy_staged(const std::vector<StagedCopy>& copies);

}  // namespace cpufree
