// One pass of a block over values in memory in three dimensions (streams.hpp tells why it may): one
// iteration, planes through shared memory.
//
// The block goes along axis 0 over a window of its tile: a row for each warp, 16 bytes of it for
// each lane. Planes of the window, with the rows and columns around it, lie in a ring of
// kRingPlanes slots in shared memory, filled by copies that threads need not wait for: most of the
// ring is on its way from memory while the planes before are computed. A thread keeps its values of
// the plane before and of this one in registers, takes those of the next one and of the rows around
// from the ring, and those of the columns around from the lanes next to it.
//
// For each 128 values (float) of a plane a warp issues some 95 instructions, 24 of them arithmetic,
// and moves 3 x 512 bytes of shared memory out and 1.2 x 512 in: 18 cycles.
//
// What it stores, a block owns: all of these points are updated, so none has to keep its value.
//
// The ring. Step k computes plane k + 1, from planes k (registers), k + 1 and k + 2. Its barrier
// comes after every thread has waited for its own copies up to plane k + 2: behind it, these planes
// are there for all (read after write). And every thread has ended step k - 1, which is the last to
// read plane k from the ring: behind the barrier, plane k + kRingPlanes is copied to the same slot
// (write after read). Windows are separated by a barrier of their own, and all copies of a window
// are waited for in its steps.
#pragma once

#include "cpufree/stencils/stream_pass.hpp"

namespace cpufree {

template <bool kSource, WarpPort P, class T>
class PlanePass : StreamWarp<P, T> {
  using Base = StreamWarp<P, T>;
  using Base::C;

 public:
  using Base::Base;

  // By all threads of the block together.
  CPUFREE_KERNEL_FN void run(bool measured, Change<P>& change) {
    const StreamPart& part = this->part_;
    const std::int32_t rows = this->port_.warps();
    for (std::int32_t y = part.lo[1]; y < part.hi[1]; y += rows)
      for (std::int32_t x = floor_to(part.lo[2], C); x < part.hi[2]; x += kWarpLanes * C) {
        this->port_.sync_block();
        begin_window(y, x);
        measured ? stream<true>(change) : stream<false>(change);
      }
  }

 private:
  static constexpr int kRow = plane_row<T>();

  CPUFREE_KERNEL_FN void begin_window(std::int32_t y, std::int32_t x) {
    const std::int32_t lane = this->port_.warp_lane(), warp = this->port_.warp();
    this->begin_strip(x, 0);
    row_ = y + warp;
    const std::int32_t end = y + this->port_.warps();
    const std::int32_t last = end < this->part_.hi[1] ? end : this->part_.hi[1];
    works_ = row_ < last;
    this->stores_ = this->stores_ && works_;
    this->whole_ = this->whole_ && works_;
    // What I copy of each plane: my values; at the ends of a row those beside; of the rows around.
    copies_ = works_ && this->column_ <= this->last_;
    first_ = lane == 0;
    final_ = lane == kWarpLanes - 1;
    beside_ = works_ && (first_ || (final_ && this->column_ + C <= this->last_));
    above_ = warp == 0 && this->column_ < this->last_;
    below_ = row_ == last - 1 && this->column_ < this->last_;
    halo_ = final_ ? C : -1 - C * lane;  // all but the last lane read what the first one needs
    place_ = (warp + 1) * kRow + C * (lane + 1);
  }

  // Starts to copy my share of a plane, whose value of mine is at `from`, to where it is at `to`.
  CPUFREE_KERNEL_FN void fetch(const T* from, T* to) const {
    const std::int64_t row = this->args_.row;
    const std::int32_t beside = first_ ? -C : C;
    this->port_.copy_in(to, from, copies_);
    this->port_.copy_in(to + beside, from + beside, beside_);
    this->port_.copy_in(to - kRow, from - row, above_);
    this->port_.copy_in(to + kRow, from + row, below_);
  }

  template <bool kMeasured>
  CPUFREE_KERNEL_FN void stream(Change<P>& change) {
    const std::int64_t plane = this->args_.plane;
    const std::int64_t mine = row_ * this->args_.row + this->column_;
    const std::int32_t begin = this->part_.lo[0], end = this->part_.hi[0];
    const std::int32_t slot = (this->port_.warps() + 2) * kRow;
    T* const ring = reinterpret_cast<T*>(this->port_.fast_memory()) + place_;
    const T* next = this->from() + (begin - 1) * plane + mine;
    T* out = this->to() + begin * plane + mine;
    for (std::int32_t k = 0; k < kRingPlanes; ++k) {
      if (begin - 1 + k <= end) fetch(next, ring + k * slot);
      this->port_.end_copies();
      next += plane;
    }
    T before[C] = {}, centre[C] = {}, after[C] = {}, f[C] = {};
    this->port_.template await_copies<kRingPlanes - 2>();  // all but the last so many
    if (copies_) load_pack(ring, before);
    if (copies_) load_pack(ring + slot, centre);
    T* past = ring;  // the plane before, once it is not needed there any more
    T* here = ring + slot;
    T* const stop = ring + kRingPlanes * slot;
    for (std::int32_t z = begin; z < end; ++z) {
      if constexpr (kSource)
        if (this->stores_)
          load_pack(this->port_.in_memory(this->args_.source) + z * plane + mine, f);
      this->port_.template await_copies<kRingPlanes - 3>();
      this->port_.sync_block();
      if (z - 1 + kRingPlanes <= end) fetch(next, past);
      this->port_.end_copies();
      next += plane;
      past = here;
      T* const ahead = here + slot == stop ? ring : here + slot;
      if (copies_) load_pack(ahead, after);
      compute<kMeasured>(here, out, before, centre, after, f, change);
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) before[c] = centre[c], centre[c] = after[c];
      here = ahead;
      out += plane;
    }
  }

  // My values of plane z: `ring` is where they are among those around.
  template <bool kMeasured>
  CPUFREE_KERNEL_FN void compute(const T* ring, T* to, const T (&before)[C], const T (&centre)[C],
                                 const T (&after)[C], const T (&f)[C], Change<P>& change) {
    T north[C], south[C], out[C];
    load_pack(ring - kRow, north);
    load_pack(ring + kRow, south);
    const T halo = ring[halo_];
    T left = this->port_.warp_up(centre[C - 1]);
    T right = this->port_.warp_down(centre[0]);
    if (first_) left = halo;
    if (final_) right = halo;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      const ValuesAround<T> u{before[c],
                              after[c],
                              north[c],
                              south[c],
                              c == 0 ? left : centre[c - 1],
                              c == C - 1 ? right : centre[c + 1],
                              f[c]};
      out[c] = this->port_.product(kJacobiWeight<3, T>, jacobi_sum<3, kSource>(u));
      if constexpr (kMeasured)
        if (this->counts(c))
          change.add(0, static_cast<double>(centre[c]), static_cast<double>(out[c]));
    }
    this->store(to, out);
  }

  std::int32_t row_ = 0, place_ = 0, halo_ = 0;
  bool works_ = false, copies_ = false, first_ = false, final_ = false, beside_ = false;
  bool above_ = false, below_ = false;
};

}  // namespace cpufree
