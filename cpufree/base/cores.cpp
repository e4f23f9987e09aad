#include "cpufree/base/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "cpufree/base/words.hpp"

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
  const std::string groups = text_of("/proc/self/cgroup");
  const std::size_t mine = groups.starts_with("0::") ? 0 : groups.find("\n0::");
  if (mine == std::string::npos) return 0;
  const std::size_t begin = groups.find('/', mine);
  if (begin == std::string::npos) return 0;
  const std::string group = groups.substr(begin, groups.find('\n', begin) - begin);
  int least = 0;
  for (std::string path = group;; path.resize(path.rfind('/'))) {
    const std::string quota = text_of("/sys/fs/cgroup" + path + "/cpu.max");
    if (const int cores = cores_of_quota(quota); cores > 0)
      least = least == 0 ? cores : std::min(least, cores);
    if (path.empty() || path.rfind('/') == std::string::npos) return least;
  }
}

}  // namespace

int cores_of_quota(const std::string& cpu_max) {
  const auto quota = number(word(cpu_max, 0)), period = number(word(cpu_max, 1));
  if (!quota || !period || *period <= 0) return 0;
  return static_cast<int>(std::clamp(*quota / *period, 1LL, 1LL << 20));
}

int available_cores() {
  static const int limit = cores_of_groups();
  const int cores = cores_of_mask();
  return limit > 0 ? std::min(cores, limit) : cores;
}

}  // namespace cpufree
