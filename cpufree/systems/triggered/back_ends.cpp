#include "cpufree/systems/triggered/back_ends.hpp"

#include "cpufree/base/error.hpp"
#include "cpufree/nics/libfabric/nics.hpp"
#include "cpufree/nics/thread/nics.hpp"

namespace cpufree::triggered {

MakeNics nics_named(const std::string& name) {
  if (name == "thread")
    return [](const nics::NicsConfig& config) -> std::unique_ptr<nics::Nics> {
      return std::make_unique<nics::ThreadNics>(config);
    };
  require(name == "libfabric" || name == "libfabric_queue",
          "there is no back end '" + name + "' of triggered operations; choose from thread, " +
              "libfabric, libfabric_queue");
  const auto calls =
      name == "libfabric" ? nics::FabricCalls::triggered : nics::FabricCalls::work_queue;
  return [calls](const nics::NicsConfig& config) { return make_libfabric_nics(config, calls); };
}

std::string libfabric_missing() { return nics::libfabric_missing(); }

}  // namespace cpufree::triggered
