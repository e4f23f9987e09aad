// Threads, warps, and atomics in a GPU's own memory, as GPUs of one vendor have it: the
// folders cuda and hip have the same functions, and all other device code is common.
#pragma once

#if defined(__HIP__)
#include "cpufree/engines/gpu_p2p/hip/threads.cuh"
#else
#include "cpufree/engines/gpu_p2p/cuda/threads.cuh"
#endif
