// The texts of kernels of probes.
#pragma once

#include <string>

#include "cpufree/probes/args.hpp"

namespace cpufree {

// Of a way; of patterns; and `nothing`, `reading` and `tile_product`, which have no port.
std::string probe_source(ProbeWay way);
std::string pattern_source();
std::string reading_source();

}  // namespace cpufree
