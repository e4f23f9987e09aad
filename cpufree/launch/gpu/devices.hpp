// Which GPUs are used, and what fits on them.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "cpufree/launch/gpu/run.hpp"

namespace cpufree {

// The device of each of `pes` PEs: those named, or the first that there are. One that is named
// several times is shared by as many PEs. Throws InvalidInput, Unsupported.
std::vector<int> choose_devices(int pes, const std::vector<int>& named);

// Multiprocessors that every PE has to itself, by the devices of all of them. Throws InvalidInput
// where one has none.
int multiprocessors_of_pe(const std::vector<int>& devices);

// Throws InvalidInput for more PEs, in however many processes, than address one another's memory.
void require_reach(int pes);

// Starts CUDA on the devices, which takes a while, beside what the host does meanwhile. Failures
// show again where the devices are used.
std::jthread wake_devices(const std::vector<int>& devices);

// Bytes of dynamic shared memory that each of a PE's `blocks` blocks may have on every device.
std::size_t fast_memory_limit(const void* kernel, const std::vector<int>& devices, int blocks);

// Throws InvalidInput unless all blocks are resident together, those of all PEs of every device:
// they wait for one another. The kernel must be loaded before. Of two launches that means a
// multiprocessor for each block of either: while one of them has not found room, there is a
// multiprocessor without any.
void require_residency(const GpuKernel& kernel, const std::vector<int>& devices);

}  // namespace cpufree
