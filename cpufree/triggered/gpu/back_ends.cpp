#include "cpufree/triggered/gpu/back_ends.hpp"

#include "cpufree/base/error.hpp"
#include "cpufree/triggered/nics/block/nics.hpp"
#include "cpufree/triggered/nics/copy_engine/nics.hpp"
#include "cpufree/triggered/nics/proxy/nics.hpp"

namespace cpufree::triggered {

namespace {
constexpr double kIdleFactor = 6.0;  // waits that a NIC on a GPU outlasts without a trigger
}  // namespace

std::unique_ptr<nics::GpuNics> make_gpu_nics(const GpuPes& pes, const GpuTriggerLayout& layout,
                                             const GpuNicsOptions& options) {
  nics::GpuNicsConfig config;
  config.nics.layout = &layout.triggers;
  config.nics.heaps = pes.heaps();
  config.nics.bytes = options.bytes;
  config.nics.times = options.times;
  config.nics.wait_limit =
      std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * options.wait_limit));
  config.devices = pes.devices();
  config.counters = &layout.counters;
  config.idle_limit = kIdleFactor * options.wait_limit;
  if (options.back_end == "copy_engine")
    return nics::make_copy_engine_nics(config, {false, options.operations});
  if (options.back_end == "on_stream")
    return nics::make_copy_engine_nics(config, {true, options.operations});
  if (options.back_end == "block") return nics::make_block_nics(config);
  require(
      options.back_end == "proxy",
      "there is no back end '" + options.back_end +
          "' of triggered operations on GPUs; choose from copy_engine, on_stream, block, proxy");
  return nics::make_proxy_nics(config);
}

}  // namespace cpufree::triggered
