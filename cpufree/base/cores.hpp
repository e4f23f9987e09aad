// The cores that this process may use.
#pragma once

#include <string>

namespace cpufree {

// Those of its affinity mask, and no more than the processor time of its control group pays for
// (cpu.max: containers, batch systems). At least 1.
int available_cores();

// The whole cores that a text of cpu.max pays for, such as "150000 100000": 1; 0 for no limit, or
// another text.
int cores_of_quota(const std::string& cpu_max);

}  // namespace cpufree
