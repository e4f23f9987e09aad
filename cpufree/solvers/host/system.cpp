#include "cpufree/solvers/host/system.hpp"

#include <string>
#include <utility>

#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/solvers/cpu/system.hpp"

namespace cpufree {

template <class T>
std::unique_ptr<System<T>> make_system(const CsrView<T>& matrix, std::span<const std::int32_t> part,
                                       std::span<const std::int32_t> order,
                                       const SystemSpec& spec) {
  if (on_gpus(spec.engine)) return gpu_engine().of<T>().from_matrix(matrix, part, order, spec);
  return std::make_unique<CpuSystem<T>>(matrix, part, order, spec);
}

template <class T>
std::unique_ptr<System<T>> make_system(SlabPlan<T> slab, const SystemSpec& spec) {
  require(needs_team(spec.engine), std::string("the engine ") + engine_name(spec.engine) +
                                       " runs in one process, and takes whole matrices");
  if (on_gpus(spec.engine)) return gpu_engine().of<T>().from_slab(std::move(slab), spec);
  return std::make_unique<CpuSystem<T>>(std::move(slab), spec);
}

template std::unique_ptr<System<float>> make_system(SlabPlan<float>, const SystemSpec&);
template std::unique_ptr<System<double>> make_system(SlabPlan<double>, const SystemSpec&);
template std::unique_ptr<System<float>> make_system(const CsrView<float>&,
                                                    std::span<const std::int32_t>,
                                                    std::span<const std::int32_t>,
                                                    const SystemSpec&);
template std::unique_ptr<System<double>> make_system(const CsrView<double>&,
                                                     std::span<const std::int32_t>,
                                                     std::span<const std::int32_t>,
                                                     const SystemSpec&);

}  // namespace cpufree
