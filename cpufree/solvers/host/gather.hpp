// Where the processes of a team put together what each of them has of an answer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/host/result.hpp"

namespace cpufree {

// The rows of the PEs; rank 0 knows those of all.
class Gathering {
 public:
  template <class T>
  Gathering(std::shared_ptr<Team> team, const HaloPlan<T>& plan);

  // `x` has the rows of this process in their places. Afterwards rank 0 has all rows, if
  // `at_first`; the others have NaN in the places of rows that are not their own.
  template <class T>
  void gather(std::span<T> x, bool at_first) const;

 private:
  std::shared_ptr<Team> team_;
  std::vector<std::vector<std::int32_t>> rows_;  // of each PE, in the order of its rows
};

// What a rank is given for a solve: the largest |entry| of its part of b, and whether it has a part
// of a first guess, which may be empty.
struct Given {
  double largest = 0.0;
  bool guess = false;
};
// The same for all parts.
Given given_in_all(Team& team, const Given& mine);

// Gives all members the outcome and the history of rank 0; the seconds from the start of the last
// kernel to the end, for what a PE waits for one that starts later is no part of the solve; and in
// `finite` whether all of x is.
void share_end(Team& team, SolveResult& result, bool& finite);

// The sum over all members.
double sum(Team& team, const char* what, double mine);

}  // namespace cpufree
