// The addresses of the probes' kernels, for host code.
#pragma once

#include <span>

#include "cpufree/probes/args.hpp"

namespace cpufree {

// Parameters are a gpu_p2p::Shared and ProbeArgs, by value. `devices`: where it is going to run,
// GPUs of one architecture where kernels are compiled when they are first used. Throws Unsupported
// there.
const void* gpu_probe_kernel(ProbeWay way, std::span<const int> devices);

}  // namespace cpufree
