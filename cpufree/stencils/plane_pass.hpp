// One pass of a block over values in memory in three dimensions (streams.hpp tells why it may): K
// iterations, one or two, planes through shared memory.
//
// The block goes along axis 0 over a window of its tile, kPlaneRows rows for each warp but the last,
// 16 bytes of each for each lane. Planes of the window, with K rows and columns around it, lie in a
// ring of kRingPlanes slots in shared memory, filled by copies that threads need not wait for: most
// of the ring is on its way from memory while the planes before are computed. A thread keeps its
// values of the plane before and of this one in registers, takes those of the next one and of the
// rows around from the ring, and those of the columns around from the lanes next to it.
//
// The last warp has the rim: it copies the rows around. Of two iterations it computes the first
// one for the row before the window and the row behind it, and for the columns on either side, so
// that all points of the window can be stored. New values of the first iteration lie in registers
// and, for the sake of those around, in shared memory, in `between`: planes of two parities.
//
// What a pass stores, a block owns: all of these points are updated, so none has to keep its value.
// Of what the first of two iterations computes around them, some may (`keeps_`).
//
// The ring. Step z computes plane z of the first iteration from planes z - 1 (registers), z and z +
// 1. Its barrier comes after every thread has waited for its own copies up to plane z + 1: behind
// it, these planes are there for all (read after write). And every thread has ended step z - 1,
// which is the last to read plane z - 1 from the ring: behind the barrier, plane z - 1 + kRingPlanes
// is copied to the same slot (write after read). Windows are separated by a barrier of their own,
// and all copies of a window are waited for in its steps.
//
// Between two iterations. Step z writes its plane to parity z of `between`, and computes plane z - 1
// of the second iteration, for which it reads parity z - 1: written in step z - 1, before the
// barrier (read after write). Parity z was read last in step z - 1, as plane z - 2, before the
// barrier as well (write after read).
#pragma once

#include "cpufree/stencils/stream_pass.hpp"

namespace cpufree {

template <int K, bool kSource, WarpPort P, class T>
class PlanePass : StreamWarp<P, T> {
  using Base = StreamWarp<P, T>;
  using Base::C;

 public:
  using Base::Base;

  // By all threads of the block together.
  CPUFREE_KERNEL_FN void run(bool measured, Change<P>& change) {
    const StreamPart& part = this->part_;
    for (std::int32_t y = part.lo[1]; y < part.hi[1]; y += window_rows())
      for (std::int32_t x = floor_to(part.lo[2], C); x < part.hi[2]; x += kWarp * C) {
        this->port_.sync_block();
        begin_window(y, x);
        measured ? stream<true>(change) : stream<false>(change);
      }
  }

 private:
  static constexpr int kRow = plane_row<T>();
  static constexpr int R = kPlaneRows;
  static_assert(K == 1 || K == 2);
  using Rows = T[R][C];

  // The columns beside a window, one row a lane: of the rim.
  struct Sides {
    T left = {}, right = {};
  };

  CPUFREE_KERNEL_FN std::int32_t window_rows() const { return (this->port_.warps() - 1) * R; }

  CPUFREE_KERNEL_FN void begin_window(std::int32_t y, std::int32_t x) {
    const std::int32_t lane = this->port_.warp_lane(), warp = this->port_.warp();
    this->begin_strip(x, 0);
    const std::int32_t end = y + window_rows();
    height_ = (end < this->part_.hi[1] ? end : this->part_.hi[1]) - y;
    rim_ = warp == this->port_.warps() - 1;
    const std::int32_t first = rim_ ? -1 : warp * R;  // of my rows, from the window's first
    step_ = rim_ ? height_ + 1 : 1;
    rows_ = rim_ ? 2 : height_ <= first ? 0 : height_ - first < R ? height_ - first : R;
    row_ = y + first;
    // What I copy of each plane: my values; at the ends of a row those beside.
    copies_ = rows_ > 0 && this->column_ < this->last_ + K;
    first_ = lane == 0;
    final_ = lane == kWarp - 1;
    beside_ = first_ || (final_ && this->column_ + C < this->last_ + K);
    halo_ = final_ ? C : -1 - C * lane;  // all but the last lane read what the first one needs
    place_ = (first + K) * kRow + C * (lane + 1);
    if constexpr (K > 1) {
      CPUFREE_UNROLL
      for (int r = 0; r < R; ++r)
        this->keeps_ = this->keeps_ || (there(r) && !this->free_at(1, row_ + r * step_));
      sides_ = lane < height_;
    }
  }

  // Whether row r is one of mine, or behind them.
  CPUFREE_KERNEL_FN bool there(int r) const { return r < 2 || !rim_; }

  // Starts to copy my share of a plane, whose first value of mine is at `from`, to where it is at
  // `to`.
  CPUFREE_KERNEL_FN void fetch(const T* from, T* to) const {
    const std::int64_t row = this->args_.row;
    const std::int32_t beside = first_ ? -C : C;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      T* const there = to + r * step_ * kRow;
      const T* const here = from + r * step_ * row;
      this->port_.copy_in(there, here, copies_ && r < rows_);
      this->port_.copy_in(there + beside, here + beside, beside_ && r < rows_);
    }
    if (K > 1 && rim_) {
      this->port_.copy_in(to - kRow, from - row, copies_);
      this->port_.copy_in(to + (step_ + 1) * kRow, from + (step_ + 1) * row, copies_);
    }
  }

  template <bool kMeasured>
  CPUFREE_KERNEL_FN void stream(Change<P>& change) {
    const std::int64_t plane = this->args_.plane;
    const std::int64_t mine = row_ * this->args_.row + this->column_;
    const std::int32_t begin = this->part_.lo[0] - (K - 1), end = this->part_.hi[0] + (K - 1);
    const std::int32_t slot = (window_rows() + 2 * K) * kRow;
    T* const ring = reinterpret_cast<T*>(this->port_.fast_memory()) + place_;
    T* const stop = ring + kRingPlanes * slot;
    const T* next = this->from() + (begin - 1) * plane + mine;
    T* out = this->to() + (begin - (K - 1)) * plane + mine;
    CPUFREE_ONE_COPY
    for (std::int32_t k = 0; k < kRingPlanes; ++k) {
      if (begin - 1 + k <= end) fetch(next, ring + k * slot);
      this->port_.end_copies();
      next += plane;
    }
    Rows before = {}, centre = {}, after = {}, f = {}, fresh = {};
    Rows older = {}, newer = {}, past_f = {};  // of the first of two iterations
    Sides beside[3];                           // of the plane before, of this one, of the next one
    this->port_.template await_copies<kRingPlanes - 2>();  // all but the last so many
    this->port_.sync_block();
    load(ring, before);
    load(ring + slot, centre);
    if (K > 1 && rim_) beside[0] = sides_of(ring), beside[1] = sides_of(ring + slot);
    T* past = ring;  // the plane before, once it is not needed there any more
    T* here = ring + slot;
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
      if (K > 1 || !rim_) sweep<true>(here, before, centre, after, f, fresh);
      if constexpr (K == 1) {
        finish<kMeasured>(out, centre, fresh, change);
      } else {
        keep(z, centre, fresh);
        T* const parity = stop - place_ + (z & 1) * (window_rows() + 2) * kRow;
        publish(parity, fresh);
        if (rim_) {
          beside[2] = sides_of(ahead);
          publish_sides(parity, z, here, beside);
          beside[0] = beside[1], beside[1] = beside[2];
        } else if (z > begin + 1) {
          Rows last;
          T* const other = stop - place_ + (~z & 1) * (window_rows() + 2) * kRow;
          sweep<false>(between(other), older, newer, fresh, past_f, last);
          finish<kMeasured>(out, newer, last, change);
        }
        copy(newer, older), copy(fresh, newer);
        if constexpr (kSource) copy(f, past_f);
      }
      copy(centre, before), copy(after, centre);
      here = ahead;
      out += plane;
    }
  }

  CPUFREE_KERNEL_FN static void copy(const Rows& from, Rows& to) {
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) to[r][c] = from[r][c];
    }
  }

  // My values of a plane in the ring, and the row below them where that takes the place of one.
  CPUFREE_KERNEL_FN void load(const T* ring, Rows& to) const {
    if (!copies_) return;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      if (there(r)) load_pack(ring + r * step_ * kRow, to[r]);
  }
  // All of my rows and one more have a source that may be read.
  CPUFREE_KERNEL_FN void load_source(std::int64_t place, Rows& to) const {
    const T* const from = this->port_.in_memory(this->args_.source) + place;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      if (copies_ && r < rows_ + K - 1) load_pack(from + r * step_ * this->args_.row, to[r]);
  }

  // One iteration of my rows: `ring` is where the old values are among those around. In the first
  // iteration, rows of the rim have others on both sides.
  template <bool kFirst>
  CPUFREE_KERNEL_FN void sweep(const T* ring, const Rows& before, const Rows& centre,
                               const Rows& after, const Rows& f, Rows& out) const {
    const bool apart = K > 1 && kFirst && rim_;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      if (kFirst && !there(r)) continue;
      const T(&row)[C] = centre[r];
      const T* const place = ring + r * (kFirst ? step_ : 1) * kRow;
      T above[C], below[C];
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) {
        above[c] = centre[r == 0 ? 0 : r - 1][c];
        below[c] = centre[r == R - 1 ? r : r + 1][c];
      }
      if (r == 0 || apart) load_pack(place - kRow, above);
      if (r == R - 1 || apart) load_pack(place + kRow, below);
      const T halo = place[halo_];
      T left = this->port_.warp_up(row[C - 1]);
      T right = this->port_.warp_down(row[0]);
      if (first_) left = halo;
      if (final_) right = halo;
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c)
        out[r][c] = value({before[r][c], after[r][c], above[c], below[c],
                           c == 0 ? left : row[c - 1], c == C - 1 ? right : row[c + 1], f[r][c]});
    }
  }
  CPUFREE_KERNEL_FN T value(const ValuesAround<T>& u) const {
    return this->port_.product(kJacobiWeight<3, T>, jacobi_sum<3, kSource>(u));
  }

  // Stores the new values of a plane, and measures by how much they differ from the old ones.
  template <bool kMeasured>
  CPUFREE_KERNEL_FN void finish(T* to, const Rows& old, const Rows& fresh, Change<P>& change) const {
    if (rim_) return;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      if (r >= rows_) continue;
      if constexpr (kMeasured) {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c)
          if (this->counts(c))
            change.add(0, static_cast<double>(old[r][c]), static_cast<double>(fresh[r][c]));
      }
      this->store(to + r * this->args_.row, fresh[r]);
    }
  }

  // --- Between two iterations ---

  // Points that keep their values.
  CPUFREE_KERNEL_FN void keep(std::int32_t z, const Rows& old, Rows& fresh) const {
    const bool plane = this->free_at(0, z);
    if (plane && !this->keeps_) return;
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      const bool free = plane && this->free_at(1, row_ + r * step_);
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) fresh[r][c] = free && this->free_[c] ? fresh[r][c] : old[r][c];
    }
  }

  // Where my first row is in a plane of `between`, which has a row around the window.
  CPUFREE_KERNEL_FN T* between(T* plane) const { return plane + place_ - (K - 1) * kRow; }
  // What others read: the first and the last row of a warp, and both rows of the rim.
  CPUFREE_KERNEL_FN void publish(T* plane, const Rows& fresh) const {
    T* const mine = between(plane);
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      if (copies_ && (r == 0 || (r == R - 1 ? rows_ == R : r == 1 && rim_)))
        store_pack(mine + r * step_ * kRow, fresh[r]);
  }

  // From a row's first value in shared memory: the columns before the window, and behind it.
  static constexpr int kLeft = -1, kRight = kWarp * C;
  // From my place to the window's first column in the row of which I have the columns beside.
  CPUFREE_KERNEL_FN std::int32_t to_side() const {
    const std::int32_t lane = this->port_.warp_lane();
    return (lane + 1) * kRow - C * lane;
  }
  CPUFREE_KERNEL_FN Sides sides_of(const T* ring) const {
    const T* const row = ring + to_side();
    return sides_ ? Sides{row[kLeft], row[kRight]} : Sides{};
  }
  CPUFREE_KERNEL_FN void publish_sides(T* plane, std::int32_t z, const T* ring,
                                       const Sides (&beside)[3]) const {
    if (!sides_) return;
    const T* const row = ring + to_side();
    T* const to = between(plane) + to_side();
    const std::int32_t lane = this->port_.warp_lane();
    const std::int32_t y = row_ + 1 + lane;              // number of the row
    const std::int32_t x = this->column_ - C * lane;     // and of the window's first column
    const auto side = [&](std::int32_t c, T before, T centre, T after) {
      T f = {};
      if constexpr (kSource)
        f = this->port_.in_memory(
            this->args_.source)[z * this->args_.plane + y * this->args_.row + x + c];
      const bool free =
          this->free_at(0, z) && this->free_at(1, y) && this->free_at(2, x + c);
      const T fresh =
          value({before, after, row[c - kRow], row[c + kRow], row[c - 1], row[c + 1], f});
      to[c] = free ? fresh : centre;
    };
    side(kLeft, beside[0].left, beside[1].left, beside[2].left);
    if (this->last_ == x + kRight)  // else one of the window's columns is the last one needed
      side(kRight, beside[0].right, beside[1].right, beside[2].right);
  }

  std::int32_t height_ = 0;                     // rows of the window
  std::int32_t row_ = 0, rows_ = 0, step_ = 1;  // my first one, how many, how far apart
  std::int32_t place_ = 0, halo_ = 0;
  bool rim_ = false, copies_ = false, first_ = false, final_ = false, beside_ = false;
  bool sides_ = false;
};

}  // namespace cpufree
