#include "cpufree/engines/cpu_threads/bootstrap.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace cpufree::cpu_threads {

int cores_available() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int spins_for(int blocks_in_all) { return blocks_in_all <= cores_available() ? 2000 : 16; }

}  // namespace cpufree::cpu_threads
