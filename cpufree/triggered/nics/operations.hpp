// What the host checks before a NIC sees it, and what it says of a NIC's table: host code that all
// back ends of triggered operations share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpufree/triggered/device/trigger_table.hpp"

namespace cpufree::nics {

// A tag that has not fired: what a hang is explained by.
struct WaitingTag {
  int pe = 0;
  TriggerTag tag;
  std::uint64_t seen = 0;  // triggers
  std::uint64_t threshold = 0;
  bool posted = false;
};

struct NicFault {
  int pe = 0;
  TriggerFault fault;
  std::string place;  // of a refused place: which part of which buffer it is
};

// What a trigger of a kernel names, as far as the host knows it.
struct SuppliedPlaces {
  TriggerTag tag;
  TriggerFields fields;
  std::uint64_t bytes[2] = {};  // that the source and the target have which it names
};

struct NicReport {
  std::vector<WaitingTag> waiting;
  std::vector<NicFault> faults;
  std::uint64_t faults_dropped = 0;  // beyond those listed
};

// "tag 7, epoch 3: 3 of 4 triggers seen, operation posted", a line each; of faults, what to do.
std::string describe(const WaitingTag& tag);
std::string describe(const NicFault& fault);
std::string describe(const NicReport& report);

// Adds what is left in a table, and its faults.
void add_table(NicReport& report, int pe, const TriggerTable& table);

// The buffers and operations of one PE's NIC. Throws InvalidInput where a call makes no sense; what
// was there before stays as it was.
class Registry {
 public:
  // `bytes`: size of symmetric memory.
  Registry(int pe, int pes, int operations, int signals, std::uint64_t bytes);

  // Memory that operations may name. Symmetric: it is that of all PEs. Returns its number, the
  // first that is free.
  std::uint32_t add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes);
  // Throws where an operation that has epochs left names it, or a trigger of such an operation;
  // `over(op)`: epochs that are over.
  template <class F>
  void check_unused(const std::string& name, F&& over) const {
    require_known(name);
    for (const auto& [number, posts] : posts_)
      for (const TriggerOperation& o : posts) refuse_removal(name, o, over(number));
    for (const SuppliedPlaces& s : supplied_)
      if (s.tag.epoch >= over(s.tag.operation)) refuse_removal(name, s);
  }
  // Returns its number.
  std::uint32_t forget_buffer(const std::string& name);

  // Checks an operation and remembers it.
  void add(const TriggerOperation& operation);
  // The same of what triggers of a kernel will supply, before its launch.
  void check(const SuppliedPlaces& supplied) const;
  template <class F>
  void remember(const SuppliedPlaces& supplied, F&& over) {
    if (supplied_.size() >= crowded_) {
      std::erase_if(supplied_,
                    [&](const SuppliedPlaces& s) { return s.tag.epoch < over(s.tag.operation); });
      crowded_ = std::max(kCrowded, 2 * supplied_.size());
    }
    supplied_.push_back(supplied);
  }

  // Throws where they are not all in one buffer; `who`: "tag 3, epoch 0: the target".
  void require_in_buffer(const std::string& who, std::uint64_t at, std::uint64_t bytes) const;
  // "bytes 480 to 544 of buffer 'x', which has 512".
  std::string text_of(std::uint64_t at, std::uint64_t bytes) const;

 private:
  struct Buffer {
    std::uint64_t offset, bytes;
    std::uint32_t number;
  };
  using Entry = std::map<std::string, Buffer>::value_type;
  void check_numbers(const TriggerOperation& o) const;
  void check_places(const TriggerOperation& o) const;
  void check_place(const TriggerOperation& o, const char* what, std::uint64_t first,
                   std::uint64_t step) const;
  void check_together(const TriggerOperation& o, const SuppliedPlaces& s) const;
  const Entry* buffer_of(std::uint64_t at) const;
  void require_known(const std::string& name) const;
  void refuse_removal(const std::string& name, const TriggerOperation& o, std::uint32_t over) const;
  void refuse_removal(const std::string& name, const SuppliedPlaces& s) const;

  int pe_, pes_, operations_, signals_;
  std::uint64_t bytes_;
  std::map<std::string, Buffer> buffers_;
  std::map<std::uint32_t, std::vector<TriggerOperation>> posts_;
  static constexpr std::size_t kCrowded = 1024;
  std::vector<SuppliedPlaces> supplied_;
  std::size_t crowded_ = kCrowded;  // when those that are over are forgotten
  std::map<std::uint32_t, std::uint32_t> next_epoch_;
};

}  // namespace cpufree::nics
