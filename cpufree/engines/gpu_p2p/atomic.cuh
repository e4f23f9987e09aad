// Flags and packets among GPUs of one host, as GPUs of one vendor have it: the
// folders cuda and hip have the same functions, and all other device code is common.
#pragma once

#if defined(__HIP__)
#include "cpufree/engines/gpu_p2p/hip/atomic.cuh"
#else
#include "cpufree/engines/gpu_p2p/cuda/atomic.cuh"
#endif
