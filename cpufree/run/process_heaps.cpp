#include "cpufree/run/process_heaps.hpp"

#include <string>

namespace cpufree {

CpuHeaps::CpuHeaps(int pes, std::size_t bytes)
    : own_(std::make_unique<cpu_threads::SymmetricHeaps>(pes, bytes)),
      bases_(own_->bases(), own_->bases() + pes) {}

CpuHeaps::CpuHeaps(Team& team, std::size_t bytes) {
  cpu_processes::Segment mine = cpu_processes::Segment::make(bytes);
  const std::string address = mine.address();
  const auto addresses =
      team.all_gather("sharing memory", std::as_bytes(std::span(address.data(), address.size())));
  for (int pe = 0; pe < team.size(); ++pe) {
    const auto text = values_of<char>(addresses[at(pe)]);
    segments_.push_back(pe == team.rank() ? std::move(mine)
                                          : cpu_processes::Segment::open(
                                                std::string(text.begin(), text.end()), bytes));
    bases_.push_back(segments_.back().data());
  }
  // Nobody closes before all have opened.
  barrier(team, "memory is shared");
  segments_[at(team.rank())].close_to_others();
}

}  // namespace cpufree
