// What the GPU that code is made for has. (The host's pass makes no code.)
#pragma once

namespace cpufree::gpu_p2p {

// Since compute capability 9.0: bulk copies, and fences of one direction.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kSinceHopper = false;
#else
inline constexpr bool kSinceHopper = true;
#endif

}  // namespace cpufree::gpu_p2p
