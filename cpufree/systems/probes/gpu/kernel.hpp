// The addresses of the probes' kernels, for host code.
#pragma once

#include "cpufree/probes/args.hpp"

namespace cpufree {

// Parameters are a gpu_p2p::Shared and ProbeArgs, by value.
const void* gpu_probe_kernel(ProbeWay way);

}  // namespace cpufree
