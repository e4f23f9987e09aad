// What the baselines use of the GPU's runtime, by its names alone.
#pragma once

#include "cpufree/base/index.hpp"
#include "cpufree/gpu/graph.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree::baselines {

using gpu::check;
using gpu::Deadline;
using gpu::DeviceArray;
using gpu::Event;
using gpu::give_up;
using gpu::Graph;
using gpu::kCopyLimit;
using gpu::MappedArray;
using gpu::OnDevice;
using gpu::Stream;
using gpu::Stuck;

}  // namespace cpufree::baselines
