// One pass of a block over values in memory in three dimensions (streams.hpp tells why it may): one
// iteration, planes through shared memory.
//
// The block goes along axis 0 over a window of its tile: kPlaneRows rows for each warp, 16 bytes of
// each for each lane. Planes of the window, with the rows and columns around it, lie in a ring of
// kRingPlanes slots in shared memory, filled by copies that threads need not wait for: most of the
// ring is on its way from memory while the planes before are computed. A thread keeps its values of
// the plane before and of this one in registers, takes those of the next one and of the rows around
// from the ring, and those of the columns around from the lanes next to it.
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
    const std::int32_t rows = this->port_.warps() * R;
    for (std::int32_t y = part.lo[1]; y < part.hi[1]; y += rows)
      for (std::int32_t x = floor_to(part.lo[2], C); x < part.hi[2]; x += kWarp * C) {
        this->port_.sync_block();
        begin_window(y, x);
        measured ? stream<true>(change) : stream<false>(change);
      }
  }

 private:
  static constexpr int kRow = plane_row<T>();
  static constexpr int R = kPlaneRows;
  using Rows = T[R][C];

  CPUFREE_KERNEL_FN void begin_window(std::int32_t y, std::int32_t x) {
    const std::int32_t lane = this->port_.warp_lane(), warp = this->port_.warp();
    this->begin_strip(x, 0);
    row_ = y + warp * R;
    const std::int32_t end = y + this->port_.warps() * R;
    const std::int32_t last = end < this->part_.hi[1] ? end : this->part_.hi[1];
    rows_ = last <= row_ ? 0 : last - row_ < R ? last - row_ : R;
    // What I copy of each plane: my values; at the ends of a row those beside; of the rows around.
    copies_ = rows_ > 0 && this->column_ <= this->last_;
    first_ = lane == 0;
    final_ = lane == kWarp - 1;
    beside_ = first_ || (final_ && this->column_ + C <= this->last_);
    above_ = warp == 0 && copies_;
    below_ = row_ + rows_ == last && copies_;
    halo_ = final_ ? C : -1 - C * lane;  // all but the last lane read what the first one needs
    place_ = (warp * R + 1) * kRow + C * (lane + 1);
  }

  // Starts to copy my share of a plane, whose value of mine is at `from`, to where it is at `to`.
  CPUFREE_KERNEL_FN void fetch(const T* from, T* to) const {
    const std::int64_t row = this->args_.row;
    const std::int32_t beside = first_ ? -C : C;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      T* const there = to + r * kRow;
      const T* const here = from + r * row;
      this->port_.copy_in(there, here, copies_ && r < rows_);
      this->port_.copy_in(there + beside, here + beside, beside_ && r < rows_);
    }
    this->port_.copy_in(to - kRow, from - row, above_);
    this->port_.copy_in(to + rows_ * kRow, from + rows_ * row, below_);
  }

  template <bool kMeasured>
  CPUFREE_KERNEL_FN void stream(Change<P>& change) {
    const std::int64_t plane = this->args_.plane;
    const std::int64_t mine = row_ * this->args_.row + this->column_;
    const std::int32_t begin = this->part_.lo[0], end = this->part_.hi[0];
    const std::int32_t slot = (this->port_.warps() * R + 2) * kRow;
    T* const ring = reinterpret_cast<T*>(this->port_.fast_memory()) + place_;
    const T* next = this->from() + (begin - 1) * plane + mine;
    T* out = this->to() + begin * plane + mine;
    for (std::int32_t k = 0; k < kRingPlanes; ++k) {
      if (begin - 1 + k <= end) fetch(next, ring + k * slot);
      this->port_.end_copies();
      next += plane;
    }
    Rows before = {}, centre = {}, after = {}, f = {};
    this->port_.template await_copies<kRingPlanes - 2>();  // all but the last so many
    load(ring, before);
    load(ring + slot, centre);
    T* past = ring;  // the plane before, once it is not needed there any more
    T* here = ring + slot;
    T* const stop = ring + kRingPlanes * slot;
    for (std::int32_t z = begin; z < end; ++z) {
      if constexpr (kSource) load_source(z * plane + mine, f);
      this->port_.template await_copies<kRingPlanes - 3>();
      this->port_.sync_block();
      if (z - 1 + kRingPlanes <= end) fetch(next, past);
      this->port_.end_copies();
      next += plane;
      past = here;
      T* const ahead = here + slot == stop ? ring : here + slot;
      load(ahead, after);
      compute<kMeasured>(here, out, before, centre, after, f, change);
      CPUFREE_UNROLL
      for (int r = 0; r < R; ++r) {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c) before[r][c] = centre[r][c], centre[r][c] = after[r][c];
      }
      here = ahead;
      out += plane;
    }
  }

  // My values of a plane in the ring, and the row below them where that takes the place of one.
  CPUFREE_KERNEL_FN void load(const T* ring, Rows& to) const {
    if (!copies_) return;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) load_pack(ring + r * kRow, to[r]);
  }
  CPUFREE_KERNEL_FN void load_source(std::int64_t place, Rows& to) const {
    const T* const from = this->port_.in_memory(this->args_.source) + place;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      if (this->stores_ && r < rows_) load_pack(from + r * this->args_.row, to[r]);
  }

  // My new values of a plane: `ring` is where the old ones are among those around.
  template <bool kMeasured>
  CPUFREE_KERNEL_FN void compute(const T* ring, T* to, const Rows& before, const Rows& centre,
                                 const Rows& after, const Rows& f, Change<P>& change) {
    T above[C], below[C];
    load_pack(ring - kRow, above);
    load_pack(ring + R * kRow, below);
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      const T(&row)[C] = centre[r];
      const T halo = ring[r * kRow + halo_];
      T left = this->port_.warp_up(row[C - 1]);
      T right = this->port_.warp_down(row[0]);
      if (first_) left = halo;
      if (final_) right = halo;
      T out[C];
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) {
        const ValuesAround<T> u{before[r][c],
                                after[r][c],
                                r == 0 ? above[c] : centre[r == 0 ? 0 : r - 1][c],
                                r == R - 1 ? below[c] : centre[r == R - 1 ? r : r + 1][c],
                                c == 0 ? left : row[c - 1],
                                c == C - 1 ? right : row[c + 1],
                                f[r][c]};
        out[c] = this->port_.product(kJacobiWeight<3, T>, jacobi_sum<3, kSource>(u));
        if constexpr (kMeasured)
          if (this->counts(c) && r < rows_)
            change.add(0, static_cast<double>(row[c]), static_cast<double>(out[c]));
      }
      if (r < rows_) this->store(to + r * this->args_.row, out);
    }
  }

  std::int32_t row_ = 0, rows_ = 0;  // my first one, and how many of them the tile has
  std::int32_t place_ = 0, halo_ = 0;
  bool copies_ = false, first_ = false, final_ = false, beside_ = false;
  bool above_ = false, below_ = false;
};

}  // namespace cpufree
