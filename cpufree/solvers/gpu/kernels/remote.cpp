#include "cpufree/solvers/gpu/kernels/remote.hpp"

#include <type_traits>

#include "cpufree/base/error.hpp"
#include "cpufree/launch/gpu/heaps.hpp"

namespace cpufree {

RemoteTables::RemoteTables(int device, const NodeTable& nodes, const RemotePlan& plan) {
  const Nodes all = nodes.view();
  const auto pes = nodes.of_pe().size();
  const auto upload = [&](const std::int32_t* list, std::size_t count) {
    return gpu::DeviceArray<std::int32_t>(device, std::vector<std::int32_t>(list, list + count));
  };
  of_pe_ = upload(all.of_pe, pes);
  place_ = upload(all.place, pes);
  first_ = upload(all.first, at(all.count) + 1);
  pes_ = upload(all.pes, pes);
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
  const auto nodes = static_cast<std::int32_t>(first_.size()) - 1;
  return {
      {nodes, of_pe_.data(), place_.data(), first_.data(), pes_.data()}, board, of_block_.data()};
}

template <class T>
GpuKernels remote_kernels(const std::string& file, const SolveSpec& spec) {
  if (spec.study != Study::none)
    throw Unsupported(
        "traces and studies on GPUs are of PEs that reach one another's memory, not of several "
        "nodes");
  const char* const type = std::is_same_v<T, double> ? "double" : "float";
  return for_any_code({nvshmem_kernel(file, remote_kernel_name(spec, type, false)),
                       nvshmem_kernel(file, remote_kernel_name(spec, type, true))});
}

template GpuKernels remote_kernels<float>(const std::string&, const SolveSpec&);
template GpuKernels remote_kernels<double>(const std::string&, const SolveSpec&);

}  // namespace cpufree
