// The all-reduce for a port: flat where loads and stores reach all PEs, in two levels where they do
// not.
#pragma once

#include <type_traits>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/device/node_reduce.hpp"

namespace cpufree {

template <Port P>
using ReductionOf =
    std::conditional_t<RemotePort<P> && P::communicates, NodeReduce<P>, AllReduce<P>>;

}  // namespace cpufree
