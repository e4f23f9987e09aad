// One pass of a warp over values in memory (time_tiles.hpp tells how, and why it may).
#pragma once

#include "cpufree/device/warp_port.hpp"
#include "cpufree/stencils/args.hpp"
#include "cpufree/stencils/change.hpp"
#include "cpufree/stencils/local.hpp"
#include "cpufree/stencils/time_tile_shape.hpp"

namespace cpufree {

// What the passes in two and three dimensions (plane_pass.hpp) share: where a warp is, what keeps
// its value, stores.
template <WarpPort P, class T>
class StreamWarp {
 public:
  static constexpr int C = kStreamColumns<T>;

  CPUFREE_KERNEL_FN StreamWarp(P& port, const TimeTileArgs<T>& args, const TimeTilePart& part,
                               int copy)
      : port_(port), args_(args), part_(part), copy_(copy) {}

 protected:
  // The strip whose first stored column is `begin`, `halo` lanes on either side.
  CPUFREE_KERNEL_FN void begin_strip(std::int32_t begin, int halo) {
    const std::int32_t lane = port_.warp_lane();
    column_ = begin + C * (lane - halo);
    const std::int32_t end = begin + C * (P::warp_width - 2 * halo);
    const std::int32_t last = end < part_.hi[2] ? end : part_.hi[2];
    reads_ = column_ < last + C * halo;
    stores_ = lane >= halo && lane < P::warp_width - halo && column_ < last;
    whole_ = stores_ && column_ >= part_.lo[2] && column_ + C <= last;
    last_ = last;
    bool inside = true;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      const std::int32_t x = column_ + c;
      free_[c] = x >= args_.keep_lo[2] && x < args_.keep_hi[2];
      inside = inside && free_[c];
    }
    keeps_ = port_.warp_or(inside ? 0U : 1U) != 0U;
  }

  CPUFREE_KERNEL_FN const T* from() const { return port_.in_memory(args_.values[copy_]); }
  CPUFREE_KERNEL_FN T* to() const { return port_.in_memory(args_.values[1 - copy_]); }
  CPUFREE_KERNEL_FN bool mine(std::int32_t x) const { return x >= part_.lo[2] && x < last_; }
  CPUFREE_KERNEL_FN bool counts(int c) const { return stores_ && mine(column_ + c); }
  CPUFREE_KERNEL_FN bool free_at(int axis, std::int32_t i) const {
    return i >= args_.keep_lo[axis] && i < args_.keep_hi[axis];
  }

  // Stores those of my columns that are the tile's.
  CPUFREE_KERNEL_FN void store(T* to, const T (&values)[C]) const {
    if (whole_) {
      store_pack(to, values);
    } else if (stores_) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c)
        if (mine(column_ + c)) to[c] = values[c];
    }
  }

  P& port_;
  const TimeTileArgs<T>& args_;
  const TimeTilePart& part_;
  std::int32_t column_ = 0, last_ = 0;
  bool reads_ = false, stores_ = false, whole_ = false, keeps_ = false;
  bool free_[C] = {};
  int copy_;
};

// K iterations in two dimensions.
template <int K, bool kSource, WarpPort P, class T>
class TimeTilePass2d : StreamWarp<P, T> {
  using Base = StreamWarp<P, T>;
  using Base::C;

 public:
  using Base::Base;

  CPUFREE_KERNEL_FN void run(bool measured, Change<P>& change) {
    constexpr int halo = (K + C - 1) / C;
    constexpr std::int32_t width = C * (P::warp_width - 2 * halo);
    const TimeTilePart& part = this->part_;
    const std::int32_t first = floor_to(part.lo[2], C);
    const std::int32_t strips = (part.hi[2] - first + width - 1) / width;
    const std::int32_t height = part.hi[0] - part.lo[0];
    for (std::int32_t u = this->port_.warp(); u < strips * part.chunks; u += this->port_.warps()) {
      const std::int32_t chunk = u / strips;
      this->begin_strip(first + (u - chunk * strips) * width, halo);
      const std::int32_t begin = part.lo[0] + cut(height, chunk, part.chunks);
      const std::int32_t end = part.lo[0] + cut(height, chunk + 1, part.chunks);
      const bool keeps =
          this->keeps_ || begin - K < this->args_.keep_lo[0] || end + K > this->args_.keep_hi[0];
      if (measured)
        stream<true, true>(begin, end, change);
      else if (keeps)
        stream<true, false>(begin, end, change);
      else
        stream<false, false>(begin, end, change);
    }
  }

 private:
  static constexpr int kAhead = 4;  // planes on their way; even, for the chain has two of each

  template <bool kKeeps, bool kMeasured>
  CPUFREE_KERNEL_FN void stream(std::int32_t begin, std::int32_t end, Change<P>& change) {
    const std::int64_t plane = this->args_.plane;
    const T* next = this->from() + (begin - K) * plane + this->column_;
    T* out = this->to() + (begin - 2 * K) * plane + this->column_;  // of the plane that is ready
    const std::int32_t last = end + K;  // beyond the last plane that is needed
    T older[K][C] = {}, newer[K][C] = {}, ahead[kAhead][C] = {};
    CPUFREE_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (this->reads_) load_pack(next, ahead[i]);
      next += begin - K + i + 1 < last ? plane : 0;
    }
    for (std::int32_t y = begin - K; y < last; y += kAhead) {
      CPUFREE_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        T in[C];
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c) in[c] = ahead[i][c];
        if (this->reads_) load_pack(next, ahead[i]);
        next += y + i + kAhead + 1 < last ? plane : 0;
        CPUFREE_UNROLL
        for (int t = 1; t <= K; ++t)
          level<kKeeps, kMeasured>(t, y + i - t, begin, end, older[t - 1], newer[t - 1], in,
                                   change);
        const std::int32_t row = y + i - K;
        if (row >= begin && row < end) this->store(out, in);
        out += plane;
      }
    }
  }

  // Iteration t of plane y. In: its planes y - 1 and y before, and y + 1 (`in`); out: planes y and
  // y + 1 before, and the new plane y (`in`).
  template <bool kKeeps, bool kMeasured>
  CPUFREE_KERNEL_FN void level(int t, std::int32_t y, std::int32_t begin, std::int32_t end,
                               T (&older)[C], T (&newer)[C], T (&in)[C], Change<P>& change) {
    T f[C] = {};
    if constexpr (kSource)
      if (this->reads_ && y >= begin - K && y < end + K)
        load_pack(this->port_.in_memory(this->args_.source) + y * this->args_.plane + this->column_,
                  f);
    const T left = this->port_.warp_up(newer[C - 1]);
    const T right = this->port_.warp_down(newer[0]);
    const bool free = !kKeeps || this->free_at(0, y);
    T out[C];
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      const ValuesAround<T> u{older[c],
                              in[c],
                              T{},
                              T{},
                              c == 0 ? left : newer[c - 1],
                              c == C - 1 ? right : newer[c + 1],
                              f[c]};
      out[c] = this->port_.product(kJacobiWeight<2, T>, jacobi_sum<2, kSource>(u));
      if constexpr (kKeeps) out[c] = free && this->free_[c] ? out[c] : newer[c];
      if constexpr (kMeasured)
        if (t == K && y >= begin && y < end && this->counts(c))
          change.add(0, static_cast<double>(newer[c]), static_cast<double>(out[c]));
    }
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) older[c] = newer[c], newer[c] = in[c], in[c] = out[c];
  }
};

}  // namespace cpufree
