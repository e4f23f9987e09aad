// Messages of MPI where this build has no GPUs.
#include "cpufree/base/error.hpp"
#include "cpufree/baselines/messages/memory.hpp"

namespace cpufree::baselines {

std::unique_ptr<MessageMemory> make_message_memory(const std::string& kind, int,
                                                   std::int64_t bytes) {
  if (kind == "host") return make_host_message_memory(bytes);
  throw Unsupported("this build of cpufree has no GPUs: build it with CUDA");
}

}  // namespace cpufree::baselines
