#include "cpufree/solvers/gpu/kernels/remote.hpp"

#include <type_traits>

#include "cpufree/base/error.hpp"
#include "cpufree/launch/gpu/heaps.hpp"

namespace cpufree {

RemoteTables::RemoteTables(int device, const NodeTable& nodes, const RemotePlan& plan)
    : nodes_(device, nodes) {
  std::vector<RemoteRun> runs;
  for (const auto& of_block : plan.runs) runs.insert(runs.end(), of_block.begin(), of_block.end());
  runs_ = {device, runs};
  std::vector<RemoteRuns> of_block;
  const RemoteRun* next = runs_.data();
  for (const auto& list : plan.runs) {
    of_block.push_back({next, static_cast<std::int32_t>(list.size())});
    next += list.size();
  }
  of_block_ = {device, of_block};
}

Remote RemoteTables::view(const NodeBoard& board) const {
  return {nodes_.view(), board, of_block_.data()};
}

template <class T>
GpuKernels remote_kernels(const SystemSpec& system, const SolveSpec& spec) {
  if (spec.study != Study::none)
    throw Unsupported(
        "traces and studies on GPUs are of PEs that reach one another's memory, not of several "
        "nodes");
  const char* const type = std::is_same_v<T, double> ? "double" : "float";
  const auto kernel = [&](bool streaming) {
    return remote_kernel(*system.team, engine_name(system.engine), system.remote_kernels,
                         remote_kernel_name(spec, type, streaming));
  };
  return for_any_code({kernel(false), kernel(true)});
}

template GpuKernels remote_kernels<float>(const SystemSpec&, const SolveSpec&);
template GpuKernels remote_kernels<double>(const SystemSpec&, const SolveSpec&);

}  // namespace cpufree
