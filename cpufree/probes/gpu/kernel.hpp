// The probes' kernels, for host code.
#pragma once

#include <gpu_names.hpp>

#include <cstdint>
#include <span>

#include "cpufree/probes/args.hpp"
#include "cpufree/probes/gpu/product_args.hpp"

namespace cpufree {

// Addresses. Parameters are a gpu_p2p::Shared and ProbeArgs, or PatternArgs, by value. `devices`:
// where they are going to run. Throw Unsupported, EngineError where they have to be compiled.
const void* gpu_probe_kernel(ProbeWay way, std::span<const int> devices);
const void* gpu_pattern_kernel(std::span<const int> devices);

// Launches, on a stream of the device that is current: a kernel of one warp that does nothing, one
// that reads `count` values, and one that multiplies tiles.
void launch_nothing(gpuStream_t stream);
void launch_reading(const double* values, std::int64_t count, double* sum, gpuStream_t stream);
// `blocks`: of which each computes some parts of the tile.
void launch_product(const ProductArgs& args, int blocks, gpuStream_t stream);
inline constexpr int kReadingThreads = 256;
inline constexpr unsigned kReadingBlocks = 64;

}  // namespace cpufree
