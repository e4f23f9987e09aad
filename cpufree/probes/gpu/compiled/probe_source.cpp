#include "cpufree/probes/gpu/compiled/probe_source.hpp"

#include "cpufree/launch/kernel_text.hpp"

namespace cpufree {

namespace {

constexpr int kProbeThreads = 1024;  // of a block, at most

}  // namespace

std::string probe_source(ProbeWay way) {
  return port_kernel(
      include_line("engines/gpu_p2p/bulk_put.cuh") + include_line("probes/kernel.hpp"),
      kProbeThreads, "ProbeArgs", "Port",
      "probe_kernel<static_cast<ProbeWay>(" + std::to_string(static_cast<int>(way)) +
          ")>(port, args);");
}

std::string pattern_source() {
  return port_kernel(include_line("probes/patterns.hpp"), kProbeThreads, "PatternArgs", "Port",
                     "pattern_kernel(port, args);");
}

std::string reading_source() {
  return include_line("probes/gpu/reading.cuh") + include_line("probes/gpu/tiles.cuh") +
         "extern \"C\" __global__ void nothing() {}\n"
         "extern \"C\" __global__ void\n"
         "reading(const double* values, std::int64_t count, double* sum) {\n"
         "  cpufree::read_all(values, count, sum);\n}\n"
         "extern \"C\" __global__ void __launch_bounds__(cpufree::kTileThreads)\n"
         "tile_product(const __grid_constant__ cpufree::ProductArgs args) {\n"
         "  cpufree::multiply_tiles(args);\n}\n";
}

}  // namespace cpufree
