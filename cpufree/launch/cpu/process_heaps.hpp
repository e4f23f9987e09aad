// Symmetric heaps of the CPU engine, one for each PE, in this process or in one for each.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/cpu_processes/memory.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"

namespace cpufree {

class CpuHeaps {
 public:
  // All of them in this process.
  CpuHeaps(int pes, std::size_t bytes);
  // One in each process of a team, mapped by all the others.
  CpuHeaps(Team& team, std::size_t bytes);

  std::byte* base(int pe) const { return bases_[at(pe)]; }
  std::byte* const* bases() const { return bases_.data(); }

 private:
  std::unique_ptr<cpu_threads::SymmetricHeaps> own_;
  std::vector<cpu_processes::Segment> segments_;
  std::vector<std::byte*> bases_;
};

}  // namespace cpufree
