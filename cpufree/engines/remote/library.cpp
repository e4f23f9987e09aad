#include "cpufree/engines/remote/library.hpp"

#include "cpufree/engines/remote/nccl/library.hpp"
#include "cpufree/engines/remote/nvshmem/library.hpp"

namespace cpufree::remote {

Library load(const Choice& choice, std::size_t bytes) {
  if (choice.engine == "nccl") return nccl::load(choice.path);
  constexpr std::size_t kOwn = std::size_t{64} << 20;  // what NVSHMEM itself takes, and more
  Library nvshmem = nvshmem::load(choice.path);
  nvshmem::want_memory(bytes + kOwn);
  return nvshmem;
}

}  // namespace cpufree::remote
