// What the warps of a block that goes through planes have in common (plane_pass.hpp).
#pragma once

#include "cpufree/stencils/time_tile_pass.hpp"

namespace cpufree {

// Where a block is in its tile: the window's first row and column, and how many rows it has.
struct PlaneWindow {
  std::int32_t y, x, height;
};

template <int K, bool kSource, WarpPort P, class T>
class PlaneWarp : protected StreamWarp<P, T> {
  using Base = StreamWarp<P, T>;
  static_assert(K == 1 || K == 2);

 public:
  using Base::C;
  using Row = T[C];  // a lane's values of one

  CPUFREE_KERNEL_FN PlaneWarp(P& port, const TimeTileArgs<T>& args, const TimeTilePart& part,
                              int copy, const PlaneWindow& window)
      : Base(port, args, part, copy) {
    const std::int32_t lane = port.warp_lane();
    this->begin_strip(window.x, 0);
    copies_ = this->column_ < this->last_ + K;
    first_ = lane == 0;
    final_ = lane == P::warp_width - 1;
  }

 protected:
  static constexpr int kRow = plane_row<T>();
  static constexpr int R = kPlaneRows;

  CPUFREE_KERNEL_FN static std::int32_t window_rows(const P& port) {
    return (port.warps() - rim_warps(3)) * R;
  }
  // Planes that the first iteration computes.
  CPUFREE_KERNEL_FN std::int32_t begin() const { return this->part_.lo[0] - (K - 1); }
  CPUFREE_KERNEL_FN std::int32_t end() const { return this->part_.hi[0] + (K - 1); }
  // Of the first plane.
  CPUFREE_KERNEL_FN const T* source() const {
    return this->port_.in_memory(this->args_.source) + begin() * this->args_.plane;
  }
  // Step z copies plane z - 1 + kRingPlanes: up to this z.
  CPUFREE_KERNEL_FN std::int32_t last_copy() const { return end() + 1 - kRingPlanes; }
  static constexpr std::int32_t kNever = -0x7fffffff, kLater = 0x7fffffff;  // of such steps

  // Goes through all planes. `worker` is the warp, which has to be a lane's first value: in a plane
  // of the ring at `place`, in memory at `mine`, as an offset from a plane's first. The planes
  // before, at, and after the one of a step change places, not their values: hence three copies of
  // the code.
  template <class W>
  CPUFREE_HOT_FN void walk(W& worker, std::int32_t place, std::int64_t mine) {
    const std::int64_t plane = this->args_.plane;
    const std::int32_t last = end();
    const std::int32_t slot = (window_rows(this->port_) + 2 * K) * kRow;
    T* const ring = reinterpret_cast<T*>(this->port_.fast_memory()) + place;
    std::int32_t z = begin();
    const T* next = this->from() + (z - 1) * plane + mine;
    CPUFREE_ONE_COPY
    for (std::int32_t k = 0; k < kRingPlanes; ++k) {
      worker.fetch(z - kRingPlanes + k, next, ring + k * slot);
      this->port_.end_copies();
      next += plane;
    }
    typename W::Plane a = {}, b = {}, c = {};
    this->port_.template await_copies<kRingPlanes - 2>();  // all but the last kRingPlanes - 2
    this->port_.sync_block();
    worker.load(ring, a);
    worker.load(ring + slot, b);
    std::int32_t past = 0;  // the plane before, once it is not needed there any more
    std::int32_t here = slot;
    const auto step = [&](auto& before, auto& centre, auto& after) {
      worker.prepare(centre);
      this->port_.template await_copies<kRingPlanes - 3>();
      this->port_.sync_block();
      worker.fetch(z, next, ring + past);
      this->port_.end_copies();
      next += plane;
      const std::int32_t ahead = here + slot == kRingPlanes * slot ? 0 : here + slot;
      worker.load(ring + ahead, after);
      worker.step(z, ring + here, before, centre, after);
      past = here;
      here = ahead;
      return ++z < last;
    };
    while (step(a, b, c) && step(b, c, a) && step(c, a, b)) {
    }
  }

  // New values of a row, the old ones of which are `centre` here and at `place` among those around.
  CPUFREE_HOT_FN void sweep(const T* place, const Row& before, const Row& centre, const Row& after,
                            const Row& above, const Row& below, const Row& f, Row& out) const {
    T left = this->port_.warp_up(centre[C - 1]);
    T right = this->port_.warp_down(centre[0]);
    if (first_) left = place[-1];
    if (final_) right = place[C];
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      out[c] = value({before[c], after[c], above[c], below[c], c == 0 ? left : centre[c - 1],
                      c == C - 1 ? right : centre[c + 1], f[c]});
  }
  CPUFREE_KERNEL_FN T value(const ValuesAround<T>& u) const {
    return this->port_.product(kJacobiWeight<3, T>, jacobi_sum<3, kSource>(u));
  }
  // Points of a row that keep their values.
  CPUFREE_HOT_FN void keep(bool row_is_free, const Row& old, Row& fresh) const {
    const std::int32_t lo = this->args_.keep_lo[2] - this->column_;
    const std::int32_t hi = row_is_free ? this->args_.keep_hi[2] - this->column_ : lo;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) fresh[c] = c >= lo && c < hi ? fresh[c] : old[c];
  }

  // The window's first value in a plane between two iterations, of either parity. There is a row
  // around the window.
  CPUFREE_KERNEL_FN T* between(int parity) const {
    const std::int32_t rows = window_rows(this->port_);
    return reinterpret_cast<T*>(this->port_.fast_memory()) +
           (kRingPlanes * (rows + 2 * K) + parity * (rows + 2) + 1) * kRow + C;
  }
  CPUFREE_KERNEL_FN static void swap(T*& a, T*& b) {
    T* const c = a;
    a = b, b = c;
  }

  bool copies_ = false, first_ = false, final_ = false;
};

// A warp that has no rows in a window only meets the others.
template <int K, bool kSource, WarpPort P, class T>
class PlaneIdler : PlaneWarp<K, kSource, P, T> {
  using Base = PlaneWarp<K, kSource, P, T>;

 public:
  using Base::Base;
  struct Plane {};
  CPUFREE_KERNEL_FN void run() { this->walk(*this, 0, 0); }
  CPUFREE_KERNEL_FN void fetch(std::int32_t, const T*, T*) const {}
  CPUFREE_KERNEL_FN void load(const T*, Plane&) const {}
  CPUFREE_KERNEL_FN void prepare(Plane&) const {}
  CPUFREE_KERNEL_FN void step(std::int32_t, const T*, Plane&, Plane&, Plane&) const {}
};

}  // namespace cpufree
