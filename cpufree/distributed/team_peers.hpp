// The PEs of a system: one in each process of a team, or all of them here.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/problem/peers.hpp"

namespace cpufree {

class TeamPeers final : public Peers {
 public:
  explicit TeamPeers(Team& team) : team_(team) {}
  int first() const override { return team_.rank(); }
  int here() const override { return 1; }
  int all() const override { return team_.size(); }
  std::vector<Bytes> all_gather(const char* what, std::vector<Bytes> mine) const override {
    return team_.all_gather(what, mine.at(0));
  }
  std::vector<std::vector<Bytes>> exchange(const char* what,
                                           std::vector<std::vector<Bytes>> mine) const override {
    return {team_.exchange(what, mine.at(0))};
  }

 private:
  Team& team_;
};

inline std::unique_ptr<Peers> peers_of(Team* team, int pes) {
  if (team == nullptr) return std::make_unique<AllHere>(at(pes));
  return std::make_unique<TeamPeers>(*team);
}

}  // namespace cpufree
