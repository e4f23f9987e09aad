// PEs on GPUs with triggered operations: as Domain of CPU threads (../domain.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

class GpuDomain {
 public:
  static constexpr std::size_t kMostSteps = 4096;    // of a PE's program
  static constexpr std::size_t kMostValues = 65536;  // that a program stores

  // Several PEs may be on one device.
  GpuDomain(const DomainConfig& config, const std::vector<int>& devices,
            const std::string& back_end);
  ~GpuDomain();
  GpuDomain(const GpuDomain&) = delete;
  GpuDomain& operator=(const GpuDomain&) = delete;

  std::uint64_t add_buffer(const std::string& name, std::uint64_t bytes);
  void remove_buffer(const std::string& name);
  // Copies of what is in memory of a PE, while no program runs.
  std::vector<std::uint8_t> read(int pe, std::uint64_t offset, std::size_t bytes) const;
  void write(int pe, std::uint64_t offset, const double* values, std::size_t count);

  void post(int pe, const TriggerOperation& operation);
  Outcome run(const Program& program, const std::function<void()>& look);
  const nics::NicReport& close();
  const std::vector<nics::Firing>& firings(int pe) const;
  const DomainConfig& config() const { return config_; }

 private:
  struct Machine;
  void upload(const Program& program);
  std::vector<std::vector<TriggerTag>> arrivals_of(const Program& program) const;
  std::vector<LostWait> lost_waits() const;

  DomainConfig config_;
  std::unique_ptr<Machine> machine_;
  bool closed_ = false;
  nics::NicReport report_;
};

}  // namespace cpufree::triggered
