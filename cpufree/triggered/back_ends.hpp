// The back ends of triggered operations, by name.
#pragma once

#include <string>

#include "cpufree/triggered/domain.hpp"

namespace cpufree::triggered {

// Throws InvalidInput where there is none of that name; what it returns throws Unsupported where
// this build or machine has none.
MakeNics nics_named(const std::string& name);

// Why there is no back end of libfabric here; empty where there is.
std::string libfabric_missing();

}  // namespace cpufree::triggered
