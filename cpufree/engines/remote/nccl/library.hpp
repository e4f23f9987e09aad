// NCCL's library (libnccl.so.2) with its device API, which 2.28 brought: symmetric windows of
// memory, whose parts on GPUs that reach one another by loads and stores ("LSA") have addresses.
#pragma once

#include <string>

#include "cpufree/engines/remote/library.hpp"

namespace cpufree::nccl {

// From `path` if that is not empty, else from where the system looks. Throws Unsupported, which
// says where it was looked for, or what the library lacks.
remote::Library load(const std::string& path);

// Whether kernels made with the headers of one version may run with the library of another, by
// NCCL's rules: structs have versions from 2.29 on, and what goes over a network is of one release.
// "" where they may, else why not. Versions as NCCL numbers them: 22809 is 2.28.9.
std::string mismatch(int built, int here, bool over_network);

}  // namespace cpufree::nccl
