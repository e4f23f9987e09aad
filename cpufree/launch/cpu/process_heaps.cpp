#include "cpufree/launch/cpu/process_heaps.hpp"

namespace cpufree {

CpuHeaps::CpuHeaps(int pes, std::size_t bytes)
    : own_(std::make_unique<cpu_threads::SymmetricHeaps>(pes, bytes)),
      bases_(own_->bases(), own_->bases() + pes) {}

CpuHeaps::CpuHeaps(Team& team, std::size_t bytes) {
  cpu_processes::Segment mine = cpu_processes::Segment::make(bytes);
  const auto addresses = each(team, "sharing memory", mine.address());
  for (int pe = 0; pe < team.size(); ++pe) {
    segments_.push_back(pe == team.rank() ? std::move(mine)
                                          : cpu_processes::Segment::open(addresses[at(pe)], bytes));
    bases_.push_back(segments_.back().data());
  }
  // No process closes before all have opened.
  barrier(team, "memory is shared");
  segments_[at(team.rank())].close_to_others();
}

}  // namespace cpufree
