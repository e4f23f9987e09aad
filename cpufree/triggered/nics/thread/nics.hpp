// Triggered operations by CPU threads: a thread for each PE watches the rings of that PE's blocks
// and copies. The embedded default.
#pragma once

#include <memory>
#include <vector>

#include "cpufree/triggered/nics/nics.hpp"

namespace cpufree::nics {

class ThreadNics : public Nics {
 public:
  // Throws EngineError where threads cannot be started.
  explicit ThreadNics(const NicsConfig& config);
  ~ThreadNics() override;

  const std::vector<Firing>& firings(int pe) const override;

 private:
  class Unit;
  Unit& unit(int pe) const { return *units_.at(static_cast<std::size_t>(pe)); }
  bool hand_over(int pe, const TriggerOperation& operation) override;
  void show_buffer(int pe, std::uint32_t number, std::uint64_t offset,
                   std::uint64_t bytes) override;
  std::uint32_t epochs_done(int pe, std::uint32_t operation) override;
  NicReport finish() override;

  std::vector<std::unique_ptr<Unit>> units_;
};

}  // namespace cpufree::nics
