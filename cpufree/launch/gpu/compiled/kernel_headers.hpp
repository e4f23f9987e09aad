// The headers that kernels are made of, by the names under which they are included, as text: made
// by cmake/embed_headers.py at build time.
#pragma once

#include <utility>
#include <vector>

namespace cpufree {

const std::vector<std::pair<const char*, const char*>>& kernel_headers();

}  // namespace cpufree
