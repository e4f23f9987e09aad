// s = A v on one GPU, with sums over its rows: own columns first, then ghosts.
#pragma once

#include <gpu_launch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/baselines/local_matrix.hpp"
#include "cpufree/baselines/steps/cg.hpp"
#include "cpufree/baselines/vendor_spmv.hpp"

namespace cpufree::baselines {

enum class Spmv { warp_slices, csr_default, csr_1, csr_2 };
inline constexpr std::array<const char*, 4> kSpmvNames = {"warp_slices", "vendor_default",
                                                          "vendor_alg1", "vendor_alg2"};

// No sums.
template <class T>
struct NoSums {
  static constexpr int kSums = 0;
  CPUFREE_KERNEL_FN void add(std::int32_t, T, double*) const {}
};

// Own columns: rows that read ghosts are summed later.
template <class T, class E>
struct OwnPart {
  E e;
  T* s;
  std::int32_t interior;
  CPUFREE_KERNEL_FN Nothing begin(bool) const { return {}; }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, T value, Nothing, double* sums) const {
    s[i] = value;
    if (i < interior) e.add(i, value, sums);
  }
};

// Ghosts, of boundary rows.
template <class T, class E>
struct GhostPart {
  E e;
  T* s;
  std::int32_t interior;
  CPUFREE_KERNEL_FN Nothing begin(bool) const { return {}; }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, T value, Nothing, double* sums) const {
    const T sum = s[interior + i] + value;
    s[interior + i] = sum;
    e.add(interior + i, sum, sums);
  }
};

// Sums alone, after a product that has none.
template <class T, class E>
struct SumsOnly {
  E e;
  const T* s;
  CPUFREE_KERNEL_FN Nothing begin(bool) const { return {}; }
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, Nothing, double* sums) const {
    e.add(i, s[i], sums);
  }
};

template <class T>
class Product {
 public:
  Product(const Stream& stream, const LocalSystem<T>& local)
      : stream_(stream), rows_(local.rows()), interior_(local.interior) {
    own_ = columns_of(local, 0, true);
    if (local.boundary() > 0)
      ghosts_ = SliceMatrix<T>(stream, columns_of(local, local.interior, false));
  }

  bool has_ghosts() const { return interior_ < rows_; }
  bool offers(Spmv spmv) const { return spmv == Spmv::warp_slices || VendorSpmv<T>::fits(own_); }

  // Seconds of one product with p . A p, the least of some. x and y are overwritten.
  double measure(Spmv spmv, T* x, T* y, const SumTarget& sums) {
    load(spmv, x, y);
    const OnDevice here(stream_.device());
    const Event from(stream_.device(), true);
    const Event to(stream_.device(), true);
    double least = std::numeric_limits<double>::max();
    for (int batch = 0; batch < kBatches; ++batch) {
      stream_.record(from);
      for (int k = 0; k < kRepeats; ++k) multiply(x, y, CurvatureSum<T>{x}, sums, [] {});
      stream_.record(to);
      to.wait(Deadline(kCopyLimit), "a trial of the sparse product");
      least = std::min(least, from.seconds_until(to) / kRepeats);
    }
    return least;
  }

  // Makes `spmv` the one in use, and frees the host's copy of the matrix.
  void choose(Spmv spmv, T* x, T* y) {
    if (!chosen_ || spmv_ != spmv) load(spmv, x, y);
    own_ = {};
  }

  // s = A v; the sums of `e` go to `target`. `receive` makes the stream wait for the ghosts.
  template <class E, class F>
  void multiply(T* v, T* s, const E& e, const SumTarget& target, F&& receive) {
    constexpr int K = E::kSums;
    const bool fused = spmv_ == Spmv::warp_slices;
    const bool two = has_ghosts();
    SumTarget own = target;
    SumTarget rest = target;
    if (two && K > 0) {
      own.out = target.partial + at(most_blocks(stream_.multiprocessors())) * kMaxSums;
      own.packets = {};
      rest.base = own.out;
    }
    if (fused)
      launch_own(v, s, e, own);
    else if (rows_ > 0)
      vendor_->multiply(v, s);
    if (two) receive();
    if (two && fused) launch_ghosts(v, s, e, rest);
    if (two && !fused) launch_ghosts(v, s, NoSums<T>{}, {});
    if constexpr (K > 0)
      if (!fused)
        check(launch_sweep<K>(stream_, stream_.multiprocessors(), rows_, SumsOnly<T, E>{e, s},
                              target),
              "launch of sums");
  }

 private:
  static constexpr int kBatches = 3;
  static constexpr int kRepeats = 5;

  void load(Spmv spmv, T* x, T* y) {
    slices_ = {};
    vendor_.reset();
    spmv_ = spmv;
    chosen_ = true;
    if (spmv == Spmv::warp_slices) {
      slices_ = SliceMatrix<T>(stream_, own_);
    } else if (rows_ > 0) {
      const gpusparseAlgorithm_t algorithms[] = {gpusparseDefault, gpusparseCsr1, gpusparseCsr2};
      vendor_ = std::make_unique<VendorSpmv<T>>(stream_, own_,
                                                algorithms[static_cast<int>(spmv) - 1], x, y);
    }
  }

  template <class E>
  void launch_own(T* v, T* s, const E& e, const SumTarget& to) const {
    check(launch_multiply<E::kSums>(stream_, stream_.multiprocessors(), slices_.view(), v,
                                    OwnPart<T, E>{e, s, interior_}, to),
          "launch of the product");
  }
  template <class E>
  void launch_ghosts(T* v, T* s, const E& e, const SumTarget& to) const {
    check(launch_multiply<E::kSums>(stream_, stream_.multiprocessors(), ghosts_.view(), v,
                                    GhostPart<T, E>{e, s, interior_}, to),
          "launch of the product with ghosts");
  }

  const Stream& stream_;
  std::int32_t rows_;
  std::int32_t interior_;
  LocalSystem<T> own_;
  Spmv spmv_ = Spmv::warp_slices;
  bool chosen_ = false;
  SliceMatrix<T> slices_;
  std::unique_ptr<VendorSpmv<T>> vendor_;
  SliceMatrix<T> ghosts_;
};

}  // namespace cpufree::baselines
