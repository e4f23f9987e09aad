// The NICs of the PEs of one process, whatever they are: one set of verbs for all back ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "cpufree/trace/record.hpp"
#include "cpufree/triggered/nics/operations.hpp"

namespace cpufree::nics {

struct NicsConfig {
  const TriggerLayout* layout = nullptr;  // outlives the NICs, as the heaps do
  std::byte* const* heaps = nullptr;      // whose triggers' part holds zeros
  std::size_t bytes = 0;                  // of a heap
  int early = 1024;                       // tags that may be triggered before they are posted
  int live = 1024;                        // posts that may have epochs left, each PE
  bool times = false;                     // record when operations fire
  std::chrono::nanoseconds wait_limit = std::chrono::seconds(60);
  // Of each PE, where its blocks and its NIC trace: the ring of the NIC comes after those of the
  // blocks. Back ends whose NICs are no software of ours write nothing.
  std::vector<const TraceRing*> traces;
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
  void add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes);
  void remove_buffer(const std::string& name);
  // Throws InvalidInput where memory is not part of one buffer; `who` begins the message.
  void require_in_buffer(const std::string& who, std::uint64_t at, std::uint64_t bytes);

  // Registers an operation with PE `pe`'s NIC, before, while or after kernels trigger it. Throws
  // InvalidInput where it makes no sense, EngineError where the NIC's list stays full too long.
  void post(int pe, const TriggerOperation& operation);

  // What triggers of a kernel that is about to be launched will supply to PE `pe`'s NIC: throws
  // InvalidInput where it makes no sense. What is remembered is compared with later posts, and
  // keeps its buffers.
  void check_supplied(int pe, const SuppliedPlaces& supplied);
  void remember(int pe, const SuppliedPlaces& supplied);

  // Ends the NICs, once they have taken all triggers that kernels have sent, which must have ended.
  // Operations that have not fired are in the report; nothing else comes of them.
  NicReport stop();
  // After stop, where times were asked for: in the order in which PE `pe`'s NIC fired.
  virtual const std::vector<Firing>& firings(int pe) const = 0;

 protected:
  explicit Nics(const NicsConfig& config);
  // Throws Unsupported for what the back end cannot carry out.
  virtual void check(int pe, const TriggerOperation& operation);
  // A post that has been checked; called with the PE's mutex held. False: no room in time.
  virtual bool hand_over(int pe, const TriggerOperation& operation) = 0;
  // Tells PE `pe`'s NIC of a buffer, the `number`th; 0 bytes: it is gone. Those that take no
  // dynamic triggers need not know.
  virtual void show_buffer(int pe, std::uint32_t number, std::uint64_t offset, std::uint64_t bytes);
  // As the blocks of the PE are told: a flag, as the table belongs to the NIC.
  virtual std::uint32_t epochs_done(int pe, std::uint32_t operation) = 0;
  virtual NicReport finish() = 0;
  void end_posts() { ended_ = true; }

 private:
  // Of one PE.
  struct Desk {
    std::mutex mutex;  // of those who post
    Registry registry;
    Desk(int pe, const TriggerSizes& s, std::size_t bytes)
        : registry(pe, s.pes, s.operations, s.signals, bytes) {}
  };
  Desk& desk(int pe);

  std::deque<Desk> desks_;
  std::atomic<bool> ended_{false};
};

}  // namespace cpufree::nics
