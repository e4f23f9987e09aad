#include "cpufree/launch/gpu/trace.hpp"

#include <utility>

namespace cpufree {

GpuTrace::GpuTrace(const TraceSpec& spec, const TraceShape& shape, const std::vector<int>& devices,
                   const std::vector<std::byte*>& heaps, int first)
    : shape_(shape), first_(first), pes_(devices.size()) {
  std::vector<PublishedPe> published;
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    Pe& pe = pes_[k];
    if (spec.heard) pe.told = gpu::MappedArray<Published>(shape.counts());
    published.push_back({pe.told.data(), nullptr});
    pe.device = devices[k];
    pe.records = gpu::DeviceArray<TraceRecord>::uninitialised(pe.device, shape.records());
    pe.written = {pe.device, shape.counts()};
    pe.bytes = {pe.device, shape.bytes()};
    pe.rings = {pe.device, trace_rings(shape, pe.records.data(), pe.written.data(), pe.bytes.data(),
                                       heaps[k], 0, pe.told.data())};
  }
  if (spec.heard) watch_.emplace(spec, shape, first, std::move(published));
}

TraceReport GpuTrace::report(Team* team) const {
  TraceReport own;
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    const Pe& pe = pes_[k];
    const gpu::OnDevice there(pe.device);
    collect_trace(own, first_ + static_cast<int>(k), shape_, pe.records.download(),
                  pe.written.download(), pe.bytes.download());
    own.starts.push_back(0);
  }
  return joined(team, std::move(own));
}

}  // namespace cpufree
