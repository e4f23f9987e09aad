// The engine on threads of the host, of which the rest of a test's program takes what makes systems
// and stencils; tests themselves call the engine's functions.
#include "cpufree/plugins/gpu/engine_table.hpp"

const cpufree::GpuEngineTable& cpufree::gpu_engine() {
  static const GpuEngineTable table = [] {
    GpuEngineTable made = {};
    made.in_float = kGpuEngineOf<float>;
    made.in_double = kGpuEngineOf<double>;
    return made;
  }();
  return table;
}
