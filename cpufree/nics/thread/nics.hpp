// Triggered operations by CPU threads: a thread for each PE watches the rings of that PE's blocks
// and copies. The embedded default.
#pragma once

#include <memory>
#include <vector>

#include "cpufree/nics/nics.hpp"

namespace cpufree::nics {

class ThreadNics : public Nics {
 public:
  // Throws EngineError where threads cannot be had.
  explicit ThreadNics(const NicsConfig& config);
  ~ThreadNics() override;

  void add_buffer(const std::string& name, std::uint64_t offset, std::uint64_t bytes) override;
  void remove_buffer(const std::string& name) override;
  void post(int pe, const TriggerOperation& operation) override;
  NicReport stop() override;
  const std::vector<Firing>& firings(int pe) const override;

 private:
  class Unit;
  std::vector<std::unique_ptr<Unit>> units_;
};

}  // namespace cpufree::nics
