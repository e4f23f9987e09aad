#include "cpufree/solvers/gpu/transfer.hpp"

#include <algorithm>

namespace cpufree {

namespace {

using gpu::OnDevice;

// The caller's work on its vector must be done before ours begins, on whatever stream it runs. It
// is the caller's, and may take as long as it likes.
void wait_for_caller(int device) {
  const OnDevice here(device);
  gpu::check(gpuDeviceSynchronize(), "earlier work on the GPU of the caller's array");
}

}  // namespace

template <class T>
GpuTransfer<T>::GpuTransfer(const std::vector<int>& devices,
                            const std::vector<gpuStream_t>& streams, std::size_t n)
    : devices_(devices), streams_(streams), n_(n), found_(devices.size()) {
  for (const int device : devices_) probes_.emplace_back(device, std::size_t{1});
}

template <class T>
T* GpuTransfer<T>::whole() {
  if (whole_.data() == nullptr) whole_ = gpu::DeviceArray<T>::uninitialised(devices_[0], n_);
  return whole_.data();
}

template <class T>
double GpuTransfer<T>::load(VectorView<const T> from, const std::vector<PrivateVector<T>>& to) {
  const T* source = from.data;
  if (!from.on_host()) wait_for_caller(from.device);
  if (from.on_host()) {
    send_staged({{devices_[0], whole(), from.data, n_ * sizeof(T)}});
    source = whole();
  } else if (!is_first_gpus_own(from.device)) {
    const OnDevice here(devices_[0]);
    gpu::copy_across(whole(), devices_[0], from.data, from.device, n_ * sizeof(T), streams_[0],
                     " of a vector");
    wait_for_copy(0);
    source = whole();
  }
  send_probes();
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const OnDevice here(devices_[k]);
    gather_vector(source, to[k].global_row, to[k].count, to[k].data, probes_[k].data(),
                  streams_[k]);
  }
  read_probes();
  double largest = 0.0;
  for (std::size_t k = 0; k < devices_.size(); ++k) largest = std::max(largest, found_[k].largest);
  return largest;
}

template <class T>
void GpuTransfer<T>::scale(const std::vector<PrivateVector<T>>& v, double factor) {
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const OnDevice here(devices_[k]);
    scale_vector(v[k].data, v[k].count, factor, streams_[k]);
  }
}

template <class T>
bool GpuTransfer<T>::store(const std::vector<PrivateVector<T>>& from, double divisor,
                           VectorView<T> to) {
  if (!to.on_host()) wait_for_caller(to.device);
  const bool direct = is_first_gpus_own(to.device);
  T* const target = direct ? to.data : whole();
  send_probes();
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const OnDevice here(devices_[k]);
    scatter_vector(from[k].data, from[k].global_row, from[k].count, divisor, target,
                   probes_[k].data(), streams_[k]);
  }
  read_probes();
  if (to.on_host()) {
    fetch_staged({{devices_[0], to.data, target, n_ * sizeof(T)}});
  } else if (!direct) {
    const OnDevice here(devices_[0]);
    gpu::copy_across(to.data, to.device, target, devices_[0], n_ * sizeof(T), streams_[0],
                     " of a vector");
    wait_for_copy(0);
  }
  bool finite = true;
  for (std::size_t k = 0; k < devices_.size(); ++k) finite = finite && found_[k].not_finite == 0;
  return finite;
}

template <class T>
void GpuTransfer<T>::wait_for_copy(std::size_t k) const {
  gpu::wait_for_stream(devices_[k], streams_[k], "the vectors of a solve");
}

template <class T>
void GpuTransfer<T>::send_probes() {
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const OnDevice here(devices_[k]);
    gpu::clear(probes_[k].data(), sizeof(VectorProbe), streams_[k]);
  }
}

// Waits for the streams, too.
template <class T>
void GpuTransfer<T>::read_probes() {
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    const OnDevice here(devices_[k]);
    gpu::copy(&found_[k], probes_[k].data(), sizeof(VectorProbe), streams_[k]);
  }
  for (std::size_t k = 0; k < devices_.size(); ++k) wait_for_copy(k);
}

template class GpuTransfer<float>;
template class GpuTransfer<double>;

}  // namespace cpufree
