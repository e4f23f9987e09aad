// Symmetric memory of NCCL as its kernels know it. Plain data, for host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree::nccl {

struct Block {
  char* begin = nullptr;  // of mine
  std::size_t bytes = 0;
  void* window = nullptr;  // ncclWindow_t
};

struct Blocks {
  const Block* first = nullptr;
  std::int64_t count = 0;
};

}  // namespace cpufree::nccl
