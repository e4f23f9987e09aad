// The texts of kernels of solvers, to be compiled on this machine from the headers of the library.
// Each holds one kernel, or a few, by names without C++ in them (extern "C").
#pragma once

#include <string>
#include <vector>

#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// A solver kernel for values of type `type`, of `port`, a class of gpu_p2p, and `format`, a policy
// of slice_codes.hpp, by their names; of N right-hand sides together. Studies are in double
// precision without a preconditioner.
std::string solver_source(const SolveSpec& spec, const std::string& type, const char* port,
                          const std::string& format, int columns = 1);

// What GPUs do with vectors (vector_entries.cuh), all of it, with values of type `type`: kernels
// gather_entries, scale_entries, scatter_entries, put_entries and take_entries.
std::string vectors_source(const std::string& type);

// The kernels that lay a matrix out (formats/layout), each by its own name: those of rows, and
// those of slices, which are compiled side by side.
std::vector<std::string> layout_sources(const std::string& type);
// Those of them that make a factorised sparse approximate inverse.
std::string inverse_source(const std::string& type);
// Those that make a hierarchy of multigrid (multigrid/setup), likewise.
std::string hierarchy_source();

}  // namespace cpufree
