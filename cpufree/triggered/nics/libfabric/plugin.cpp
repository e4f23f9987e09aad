// The shared object of libfabric's NICs: what triggered/back_ends.cpp loads.
#include "cpufree/triggered/nics/libfabric/nics.hpp"

extern "C" cpufree::nics::Nics* cpufree_libfabric_nics(const cpufree::nics::NicsConfig* config,
                                                       cpufree::nics::FabricCalls calls) {
  return cpufree::nics::make_libfabric_nics(*config, calls).release();
}
