// In builds without libfabric's headers.
#include "cpufree/base/error.hpp"
#include "cpufree/nics/libfabric/nics.hpp"

namespace cpufree::nics {

std::string libfabric_missing() {
  return "this build has no libfabric: install libfabric-dev, and build again";
}

std::unique_ptr<Nics> make_libfabric_nics(const NicsConfig&, FabricCalls) {
  throw Unsupported(libfabric_missing());
}

}  // namespace cpufree::nics
