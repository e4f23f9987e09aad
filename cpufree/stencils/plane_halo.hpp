// What is around the window of a block that goes through planes (plane_pass.hpp): a warp for the
// rows, one for the columns.
#pragma once

#include "cpufree/stencils/plane_warp.hpp"

namespace cpufree {

// K rows before the window, K behind it. Of two iterations, the first one for the nearer of them.
template <int K, bool kSource, WarpPort P, class T>
class PlaneHaloRows : PlaneWarp<K, kSource, P, T> {
  using Base = PlaneWarp<K, kSource, P, T>;
  using Base::kRow, Base::C;

 public:
  struct Plane {
    T old[2][C];
    T f[2][C];
  };

  CPUFREE_KERNEL_FN PlaneHaloRows(P& port, const TimeTileArgs<T>& args, const TimeTilePart& part,
                                  int copy, const PlaneWindow& window)
      : Base(port, args, part, copy, window) {
    row_ = window.y - 1;
    apart_ = window.height + 1;
    place_ = C * port.warp_lane() - kRow;
    const std::int32_t last = this->last_copy();
    until_ = this->copies_ ? last : Base::kNever;
    beside_ = this->first_ ? -C : C;
    const bool ends = this->first_ || (this->final_ && this->column_ + C < this->last_ + K);
    beside_until_ = ends ? last : Base::kNever;
    if constexpr (K > 1) {
      mine_ = this->between(0) + place_;
      other_ = this->between(1) + place_;
      const bool all_free =
          !this->keeps_ && this->free_at(1, row_) && this->free_at(1, row_ + apart_);
      free_lo_ = static_cast<std::uint32_t>(this->args_.keep_lo[0]);
      free_count_ = all_free ? static_cast<std::uint32_t>(this->args_.keep_hi[0]) - free_lo_ : 0;
    }
  }

  CPUFREE_KERNEL_FN void run() {
    const std::int64_t mine = row_ * this->args_.row + this->column_;
    // Lanes beyond the last column read what the first one reads.
    if constexpr (K > 1 && kSource)
      source_ = this->source() + mine - (this->copies_ ? 0 : C * this->port_.warp_lane());
    this->walk(*this, place_ + K * kRow + C, mine);
  }

  CPUFREE_HOT_FN void fetch(std::int32_t z, const T* from, T* to) const {
    const std::int64_t row = this->args_.row;
    T* const far = to + apart_ * kRow;
    const T* const from_far = from + apart_ * row;
    this->port_.copy_in(to, from, z <= until_);
    this->port_.copy_in(far, from_far, z <= until_);
    if constexpr (K > 1) {
      this->port_.copy_in(to - kRow, from - row, z <= until_);
      this->port_.copy_in(far + kRow, from_far + row, z <= until_);
      this->port_.copy_in(to + beside_, from + beside_, z <= beside_until_);
      this->port_.copy_in(far + beside_, from_far + beside_, z <= beside_until_);
    }
  }
  CPUFREE_HOT_FN void load(const T* from, Plane& to) const {
    if constexpr (K > 1) {
      load_pack(from, to.old[0]);
      load_pack(from + apart_ * kRow, to.old[1]);
    }
  }
  CPUFREE_HOT_FN void prepare(Plane& centre) {
    if constexpr (K > 1 && kSource) {
      CPUFREE_UNROLL
      for (int r = 0; r < 2; ++r) load_pack(source_ + r * apart_ * this->args_.row, centre.f[r]);
      source_ += this->args_.plane;
    }
  }
  CPUFREE_HOT_FN void step(std::int32_t z, const T* here, Plane& before, Plane& centre,
                           Plane& after) {
    if constexpr (K > 1) {
      T fresh[2][C];
      CPUFREE_UNROLL
      for (int r = 0; r < 2; ++r) {
        const T* const place = here + r * apart_ * kRow;
        T above[C], below[C];
        load_pack(place - kRow, above);
        load_pack(place + kRow, below);
        this->sweep(place, before.old[r], centre.old[r], after.old[r], above, below, centre.f[r],
                    fresh[r]);
      }
      if (static_cast<std::uint32_t>(z) - free_lo_ >= free_count_) {
        const bool plane = this->free_at(0, z);
        CPUFREE_UNROLL
        for (int r = 0; r < 2; ++r)
          this->keep(plane && this->free_at(1, row_ + r * apart_), centre.old[r], fresh[r]);
      }
      CPUFREE_UNROLL
      for (int r = 0; r < 2; ++r) store_pack(mine_ + r * apart_ * kRow, fresh[r]);
      this->swap(mine_, other_);
    }
  }

 private:
  std::int32_t row_, apart_;           // the one before the window; from there to the one behind it
  std::int32_t place_;                 // from the window's first value in shared memory
  std::int32_t until_, beside_until_;  // the last step that copies
  std::int32_t beside_;                // from my values to the 16 bytes at a row's end
  std::uint32_t free_lo_ = 0, free_count_ = 0;  // planes where none of my points keeps its value
  const T* source_ = nullptr;
  T *mine_ = nullptr, *other_ = nullptr;  // between two iterations, of this plane and the other
};

// 16 bytes on either side of the window, a row to a lane. Of two iterations, the first one for the
// nearer columns.
template <int K, bool kSource, WarpPort P, class T>
class PlaneHaloSides : PlaneWarp<K, kSource, P, T> {
  using Base = PlaneWarp<K, kSource, P, T>;
  using Base::kRow, Base::C;
  // From a row's first value: the columns before the window, and behind it.
  static constexpr int kLeft = -1, kRight = P::warp_width * C;

 public:
  struct Plane {
    T left, right;
    T left_f, right_f;
  };

  // Lanes that have no row read what the first one reads.
  CPUFREE_KERNEL_FN PlaneHaloSides(P& port, const TimeTileArgs<T>& args, const TimeTilePart& part,
                                   int copy, const PlaneWindow& window)
      : Base(port, args, part, copy, window) {
    const std::int32_t lane = port.warp_lane();
    there_ = lane < window.height;
    const std::int32_t row = there_ ? lane : 0;
    y_ = window.y + row;
    x_ = window.x;
    place_ = row * kRow;
    // Else one of the window's columns is the last one needed.
    right_ = there_ && this->last_ == x_ + kRight;
    until_ = there_ ? this->last_copy() : Base::kNever;
    right_until_ = there_ && x_ + kRight < this->last_ + K ? until_ : Base::kNever;
    if constexpr (K > 1) {
      mine_ = this->between(0) + place_;
      other_ = this->between(1) + place_;
      left_free_ = this->free_at(1, y_) && this->free_at(2, x_ + kLeft);
      right_free_ = this->free_at(1, y_) && this->free_at(2, x_ + kRight);
    }
  }

  CPUFREE_KERNEL_FN void run() {
    const std::int64_t mine = y_ * this->args_.row + x_;
    if constexpr (K > 1 && kSource) source_ = this->source() + mine;
    this->walk(*this, place_ + K * kRow + C, mine);
  }

  CPUFREE_HOT_FN void fetch(std::int32_t z, const T* from, T* to) const {
    this->port_.copy_in(to - C, from - C, z <= until_);
    this->port_.copy_in(to + kRight, from + kRight, z <= right_until_);
  }
  CPUFREE_HOT_FN void load(const T* from, Plane& to) const {
    if constexpr (K > 1) to.left = from[kLeft], to.right = from[kRight];
  }
  CPUFREE_HOT_FN void prepare(Plane& centre) {
    if constexpr (K > 1 && kSource) {
      centre.left_f = source_[kLeft];
      centre.right_f = source_[right_ ? kRight : kLeft];  // there may be nothing
      source_ += this->args_.plane;
    }
  }
  CPUFREE_HOT_FN void step(std::int32_t z, const T* here, Plane& before, Plane& centre,
                           Plane& after) {
    if constexpr (K > 1) {
      const auto side = [&](int c, T was, T is, T will, T f, bool free) {
        const T fresh =
            this->value({was, will, here[c - kRow], here[c + kRow], here[c - 1], here[c + 1], f});
        if (there_) mine_[c] = free ? fresh : is;
      };
      const bool plane = this->free_at(0, z);
      side(kLeft, before.left, centre.left, after.left, centre.left_f, plane && left_free_);
      side(kRight, before.right, centre.right, after.right, centre.right_f, plane && right_free_);
      this->swap(mine_, other_);
    }
  }

 private:
  std::int32_t y_, x_;                           // my row, and the window's first column
  std::int32_t place_;                           // from the window's first value in shared memory
  std::int32_t until_, right_until_;             // the last step that copies
  bool there_, right_;                           // whether I have a row, and something on its right
  bool left_free_ = false, right_free_ = false;  // in planes that do not keep their values
  const T* source_ = nullptr;
  T *mine_ = nullptr, *other_ = nullptr;  // between two iterations, of this plane and the other
};

}  // namespace cpufree
