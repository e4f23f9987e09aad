// Vectors between the caller's memory and the private vectors of all GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpufree/gpu/memory.hpp"
#include "cpufree/solvers/gpu/kernels/vectors.hpp"
#include "cpufree/solvers/gpu/layout/staging.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

// One GPU's part of a vector, and where its entries belong.
template <class T>
struct PrivateVector {
  T* data = nullptr;
  const std::int32_t* global_row = nullptr;
  std::int64_t count = 0;
};

// Whole vectors pass through an array on the first GPU, in the caller's order, from which and to
// which all GPUs gather and scatter. One GPU alone takes vectors of its own memory as they are.
template <class T>
class GpuTransfer {
 public:
  // `streams`: one of each device.
  GpuTransfer(const std::vector<int>& devices, const std::vector<gpuStream_t>& streams,
              std::size_t n);

  // to = from. Returns the largest |entry| that is a number.
  double load(VectorView<const T> from, const std::vector<PrivateVector<T>>& to);
  // v *= factor.
  void scale(const std::vector<PrivateVector<T>>& v, double factor);
  // to = from / divisor. Returns whether all of it is finite.
  bool store(const std::vector<PrivateVector<T>>& from, double divisor, VectorView<T> to);

 private:
  bool is_first_gpus_own(int device) const { return devices_.size() == 1 && device == devices_[0]; }
  T* whole();
  void wait_for_copy(std::size_t k) const;
  void send_probes();
  void read_probes();

  std::vector<int> devices_;
  std::vector<gpuStream_t> streams_;
  std::size_t n_;
  gpu::DeviceArray<T> whole_;  // made when first needed
  std::vector<gpu::DeviceArray<VectorProbe>> probes_;
  gpu::PinnedArray<VectorProbe> found_;
};

}  // namespace cpufree
