// Sets a linear system up on GPUs. What calls it may be without a GPU engine, and takes it from
// the table of plugins/gpu/engine_table.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

template <class T>
std::unique_ptr<System<T>> make_cuda_system(const CsrView<T>& matrix,
                                            std::span<const std::int32_t> part,
                                            std::span<const std::int32_t> order,
                                            const SystemSpec& spec);
template <class T>
std::unique_ptr<System<T>> make_cuda_system(SlabPlan<T> slab, const SystemSpec& spec);
// Of a matrix that lies on a GPU, for one PE, which may be on another one: no entry of it visits
// the host. Where the host is to lay it out, or to say what is wrong with it, the system is not
// usable and PlanReport::refused says why. Throws as make_system does.
template <class T>
std::unique_ptr<System<T>> make_cuda_system(const GivenCsr<T>& matrix, const SystemSpec& spec);

}  // namespace cpufree
