// The kernels of this process that were compiled on this machine, by their texts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cpufree/gpu/launch.hpp"

namespace cpufree {

// The machine code of these texts, loaded to the end of the process; what is neither loaded nor on
// disk is compiled, all of it at the same time. `devices`: where it is going to run, GPUs of one
// architecture. `options`: more of them for the compiler, the same whenever a text is asked for.
// Throws Unsupported where they are not, or there is no compiler; EngineError.
std::vector<gpuLibrary_t> compiled_code(const std::vector<std::string>& sources,
                                        std::span<const int> devices,
                                        const std::vector<std::string>& options = {});

// Begins to compile these texts, unless they are loaded, for who is going to ask for them with the
// same devices. That goes on by itself (finish_compiling): who asks for one waits for that one, and
// is told if it cannot be had. Nothing is loaded.
void compile_ahead(const std::vector<std::string>& sources, std::span<const int> devices);

// Whether all of these texts came with the package, compiled.
bool are_shipped(const std::vector<std::string>& sources, std::span<const int> devices);

// Compiles these texts for an architecture, and keeps them in a folder that may be given as
// `shipped` to set_kernel_compiler. Needs no GPU. Throws Unsupported, EngineError.
void ship_code(const std::vector<std::string>& sources, const std::string& architecture,
               const std::string& folder);

// Name, version and path of the compiler. Throws Unsupported where there is none.
std::string compiler_found();

// The kernel of a text that holds one (kernel_source.hpp).
const void* only_kernel(gpuLibrary_t code);

}  // namespace cpufree
