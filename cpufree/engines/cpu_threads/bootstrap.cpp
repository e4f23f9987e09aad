#include "cpufree/engines/cpu_threads/bootstrap.hpp"

#include "cpufree/base/parallel.hpp"

namespace cpufree::cpu_threads {

int spins_for(int blocks_in_all) { return blocks_in_all <= available_cores() ? 2000 : 16; }

}  // namespace cpufree::cpu_threads
