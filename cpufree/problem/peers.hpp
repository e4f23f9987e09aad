// The PEs that a matrix is shared among, as seen from a process that runs some of them: how they
// tell one another what only some of them know. Plain data moves, in calls that all processes make
// in the same order.
#pragma once

#include <utility>
#include <vector>

#include "cpufree/base/bytes.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

class Peers {
 public:
  virtual ~Peers() = default;
  // The PEs of this process: [first, first + here) of all.
  virtual int first() const = 0;
  virtual int here() const = 0;
  virtual int all() const = 0;
  // What each PE of this process gives, and what all have given, by PE. `what` names the call.
  virtual std::vector<Bytes> all_gather(const char* what, std::vector<Bytes> mine) const = 0;
  // PE first() + k sends mine[k][j] to PE j; returns what it was sent, result[k][j] by PE j.
  virtual std::vector<std::vector<Bytes>> exchange(const char* what,
                                                   std::vector<std::vector<Bytes>> mine) const = 0;
};

// All of them are in this process.
class AllHere final : public Peers {
 public:
  explicit AllHere(std::size_t pes) : pes_(static_cast<int>(pes)) {}
  int first() const override { return 0; }
  int here() const override { return pes_; }
  int all() const override { return pes_; }
  std::vector<Bytes> all_gather(const char*, std::vector<Bytes> mine) const override {
    return mine;
  }
  std::vector<std::vector<Bytes>> exchange(const char*,
                                           std::vector<std::vector<Bytes>> mine) const override {
    for (std::size_t a = 0; a < mine.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) std::swap(mine[a][b], mine[b][a]);
    return mine;
  }

 private:
  int pes_;
};

template <class V>
Bytes packed(const std::vector<V>& values) {
  const auto bytes = bytes_of(values);
  return {bytes.begin(), bytes.end()};
}

// The lists of all PEs, from those of the PEs here.
template <class V>
std::vector<std::vector<V>> gather_lists(const Peers& peers, const char* what,
                                         const std::vector<std::vector<V>>& mine) {
  std::vector<Bytes> given;
  for (const auto& list : mine) given.push_back(packed(list));
  std::vector<std::vector<V>> all;
  for (const Bytes& bytes : peers.all_gather(what, std::move(given)))
    all.push_back(values_of<V>(bytes));
  return all;
}

// The lists that the PEs here are sent, from those that they send.
template <class V>
std::vector<std::vector<std::vector<V>>> exchange_lists(
    const Peers& peers, const char* what, const std::vector<std::vector<std::vector<V>>>& mine) {
  std::vector<std::vector<Bytes>> sent(mine.size());
  for (std::size_t k = 0; k < mine.size(); ++k)
    for (const auto& list : mine[k]) sent[k].push_back(packed(list));
  std::vector<std::vector<std::vector<V>>> got(mine.size());
  const auto received = peers.exchange(what, std::move(sent));
  for (std::size_t k = 0; k < mine.size(); ++k)
    for (const Bytes& bytes : received[k]) got[k].push_back(values_of<V>(bytes));
  return got;
}

// The sum of a number of each PE here, over all PEs.
template <class V>
V sum_of_all(const Peers& peers, const char* what, const std::vector<V>& mine) {
  std::vector<std::vector<V>> lists;
  for (const V& value : mine) lists.push_back({value});
  V sum{};
  for (const auto& list : gather_lists(peers, what, lists)) sum += list.at(0);
  return sum;
}

}  // namespace cpufree
