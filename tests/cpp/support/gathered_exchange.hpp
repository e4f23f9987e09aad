// The exchange of a team of the tests: each member gets everything, and takes what is meant for it.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "cpufree/distributed/team.hpp"

namespace cpufree {

inline std::vector<Bytes> exchange_by_gather(Team& team, const char* what,
                                             const std::vector<Bytes>& mine) {
  std::vector<std::uint64_t> sizes;
  Bytes message;
  for (const Bytes& part : mine) sizes.push_back(part.size());
  const auto head = bytes_of(sizes);
  message.insert(message.end(), head.begin(), head.end());
  for (const Bytes& part : mine) message.insert(message.end(), part.begin(), part.end());
  std::vector<Bytes> received;
  for (const Bytes& all : team.all_gather(what, message)) {
    std::vector<std::uint64_t> theirs(at(team.size()));
    std::memcpy(theirs.data(), all.data(), theirs.size() * sizeof(std::uint64_t));
    auto from = all.begin() + static_cast<std::ptrdiff_t>(theirs.size() * sizeof(std::uint64_t));
    for (int k = 0; k < team.rank(); ++k) from += static_cast<std::ptrdiff_t>(theirs[at(k)]);
    received.emplace_back(from, from + static_cast<std::ptrdiff_t>(theirs[at(team.rank())]));
  }
  return received;
}

}  // namespace cpufree
