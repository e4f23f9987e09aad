// What both programs print.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernel.hpp"

namespace own {

// The PE that is to stay away: "PROGRAM --absent 1"; -1: none.
inline int absent_pe(int argc, char** argv) {
  return argc == 3 && std::string(argv[1]) == "--absent" ? std::atoi(argv[2]) : -1;
}

inline void print(const Outcome& outcome) {
  std::printf("value after %d rounds: %.0f\n", kRounds, outcome.value);
  std::printf("pi: %.10f\n", outcome.pi);
}

// Tells who waited for whom. Returns how many blocks did.
inline int print_waits(const cpufree::WaitRecord* records, std::size_t count, int blocks) {
  int waits = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const cpufree::WaitRecord& r = records[k];
    if (!r.waited()) continue;
    ++waits;
    std::fprintf(stderr,
                 "PE %d, block %d gave up after %.2f s: it waited for PE %d (%s %llu, saw %llu)\n",
                 static_cast<int>(k) / blocks, static_cast<int>(k) % blocks, r.seconds, r.from_pe,
                 cpufree::channel_name(r.channel), static_cast<unsigned long long>(r.want),
                 static_cast<unsigned long long>(r.seen));
  }
  return waits;
}

}  // namespace own
