// The NICs of the PEs of one process, whatever they are: one set of verbs for all back ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cpufree/nics/operations.hpp"

namespace cpufree::nics {

struct NicsConfig {
  const TriggerLayout* layout = nullptr;  // outlives the NICs, as the heaps do
  std::byte* const* heaps = nullptr;      // whose triggers' part holds zeros
  std::size_t bytes = 0;                  // of a heap
  int early = 1024;                       // tags that may be triggered before they are posted
  int live = 1024;                        // posts that may have epochs left, each PE
  bool times = false;                     // record when operations fire
  std::chrono::nanoseconds wait_limit = std::chrono::seconds(60);
};

// An operation that was carried out; nanoseconds of the steady clock.
struct Firing {
  TriggerTag tag;
  TriggerFields fields;
  std::int64_t begun = 0;  // found ready
  std::int64_t ended = 0;  // its flags were set
};

class Nics {
 public:
  virtual ~Nics() = default;
  Nics(const Nics&) = delete;
  Nics& operator=(const Nics&) = delete;

  // Registers memory for operations to name, and takes it back: throws InvalidInput where it
  // overlaps other memory, or where an operation with epochs left names it.
  virtual void add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes) = 0;
  virtual void remove_buffer(const std::string& name) = 0;

  // Registers an operation with PE `pe`'s NIC, before, while or after kernels trigger it. Throws
  // InvalidInput where it makes no sense, EngineError where the NIC's list stays full too long.
  virtual void post(int pe, const TriggerOperation& operation) = 0;

  // Ends the NICs, once they have taken all triggers that kernels have sent, which must have ended.
  // Operations that have not fired are in the report; nothing else comes of them.
  virtual NicReport stop() = 0;
  // After stop, where times were asked for: in the order in which PE `pe`'s NIC fired.
  virtual const std::vector<Firing>& firings(int pe) const = 0;

 protected:
  Nics() = default;
};

}  // namespace cpufree::nics
