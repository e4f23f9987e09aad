// What this machine offers the CPU engine.
#pragma once

namespace cpufree::cpu_threads {

// How often a wait looks before it offers its core: long where every block has a core to itself,
// hardly at all where blocks share cores.
int spins_for(int blocks_in_all);

}  // namespace cpufree::cpu_threads
