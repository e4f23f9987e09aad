// The kernel of a block that is a NIC, for host code.
#pragma once

#include "cpufree/triggered/device/trigger_nic.hpp"
#include "cpufree/triggered/nics/nics.hpp"

namespace cpufree::nics {

// The first warp keeps the table, the others copy. With more threads it would lack registers.
inline constexpr int kNicThreads = 512;

// What a NIC writes down of a firing: nanoseconds of its GPU's clock.
struct FiringEntry {
  TriggerTag tag;
  TriggerFields fields;
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
};

// The table as it was when the NIC ended, and how it ended.
struct NicEnd {
  alignas(TriggerTable) unsigned char table[sizeof(TriggerTable)];
  std::uint64_t firings = 0;
  std::uint32_t gave_up = 0;
  std::uint32_t idle = 0;  // left because nothing came for too long
};

struct BlockNicArgs {
  TriggerBoard board;
  TriggerTable::Memory memory;
  TriggerTable::Limits limits;
  TriggerRing* rings = nullptr;
  Epoch* queued = nullptr;
  FiringEntry* log = nullptr;
  std::uint64_t log_size = 0;
  NicEnd* end = nullptr;
  const volatile unsigned* ending = nullptr;  // host: not 0 when the NIC is to end
  std::uint64_t idle_limit_ns = 0;
};

// Parameters are a gpu_p2p::Shared and BlockNicArgs, by value; one block of kNicThreads.
const void* block_nic_kernel();

}  // namespace cpufree::nics
