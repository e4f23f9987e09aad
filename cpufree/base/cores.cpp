#include "cpufree/base/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

namespace cpufree {

namespace {

int cores_of_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The narrowest limit of the process's group and those above it; 0: none.
int cores_of_groups() {
  std::ifstream groups("/proc/self/cgroup");
  std::string group;
  while (std::getline(groups, group) && !group.starts_with("0::")) {
  }
  if (!group.starts_with("0::")) return 0;
  int least = 0;
  for (std::string path = group.substr(3);; path.resize(path.rfind('/'))) {
    std::ifstream file("/sys/fs/cgroup" + path + "/cpu.max");
    std::string text;
    std::getline(file, text);
    if (const int cores = cores_of_quota(text); cores > 0)
      least = least == 0 ? cores : std::min(least, cores);
    if (path.empty() || path.rfind('/') == std::string::npos) return least;
  }
}

}  // namespace

int cores_of_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0.0, period = 0.0;
  if (!(words >> quota >> period) || period <= 0.0) return 0;
  return std::max(1, static_cast<int>(quota / period));
}

int available_cores() {
  static const int limit = cores_of_groups();
  const int cores = cores_of_mask();
  return limit > 0 ? std::min(cores, limit) : cores;
}

}  // namespace cpufree
