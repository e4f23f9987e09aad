// A warp of a block that goes through planes: rows of the window (plane_pass.hpp).
#pragma once

#include "cpufree/stencils/plane_warp.hpp"

namespace cpufree {

template <int K, bool kSource, bool kMeasured, WarpPort P, class T>
class PlaneRows : PlaneWarp<K, kSource, P, T> {
  using Base = PlaneWarp<K, kSource, P, T>;
  using Base::kRow, Base::R, Base::C;
  using Rows = T[R][C];
  static_assert(R == 2);

 public:
  // Of a plane: what it was, what the first of two iterations has made of it, and the source.
  struct Plane {
    Rows old, fresh, f;
  };

  // The window has at least one row for this warp.
  CPUFREE_KERNEL_FN PlaneRows(P& port, const TimeTileArgs<T>& args, const TimeTilePart& part,
                              int copy, const PlaneWindow& window, Change<P>& change)
      : Base(port, args, part, copy, window), change_(change) {
    const std::int32_t first = port.warp() * R;
    row_ = window.y + first;
    both_ = window.height - first >= R;
    place_ = first * kRow + C * port.warp_lane();
    const std::int32_t last = this->copies_ ? this->last_copy() : Base::kNever;
    until_[0] = last;
    until_[1] = both_ ? last : Base::kNever;
    from_ = this->begin() + 2 * (K - 1);
    whole_from_ = both_ && port.warp_or(this->whole_ ? 0U : 1U) == 0U ? from_ : Base::kLater;
    if constexpr (K > 1) {
      mine_ = this->between(0) + place_;
      other_ = this->between(1) + place_;
      bool all_free = !this->keeps_;
      CPUFREE_UNROLL
      for (int r = 0; r < R; ++r) all_free = all_free && this->free_at(1, row_ + r);
      free_lo_ = static_cast<std::uint32_t>(this->args_.keep_lo[0]);
      free_count_ = all_free ? static_cast<std::uint32_t>(this->args_.keep_hi[0]) - free_lo_ : 0;
    }
  }

  CPUFREE_KERNEL_FN void run() {
    const std::int64_t mine = row_ * this->args_.row + this->column_;
    out_ = this->to() + (this->begin() - (K - 1)) * this->args_.plane + mine;
    // Lanes beyond the last column read what the first one reads. Of two iterations, the first one
    // computes the row behind the window too, where that is next to the only row of this warp.
    if constexpr (kSource)
      source_ = this->source() + mine - (this->copies_ ? 0 : C * this->port_.warp_lane());
    this->walk(*this, place_ + K * kRow + C, mine);
  }

  CPUFREE_HOT_FN void fetch(std::int32_t z, const T* from, T* to) const {
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      this->port_.copy_in(to + r * kRow, from + r * this->args_.row, z <= until_[r]);
  }
  CPUFREE_HOT_FN void load(const T* from, Plane& to) const {
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) load_pack(from + r * kRow, to.old[r]);
  }
  // Without a condition, so that what is there before is not kept for nothing.
  CPUFREE_HOT_FN void prepare(Plane& centre) {
    if constexpr (kSource) {
      load_pack(source_, centre.f[0]);
      load_pack(source_ + (K > 1 || both_ ? this->args_.row : 0), centre.f[1]);
      source_ += this->args_.plane;
    }
  }

  CPUFREE_HOT_FN void step(std::int32_t z, const T* here, Plane& before, Plane& centre,
                           Plane& after) {
    Rows fresh;
    level(here, before.old, centre.old, after.old, centre.f, fresh);
    if constexpr (K == 1) {
      finish(z, centre.old, fresh);
    } else {
      CPUFREE_UNROLL
      for (int r = 0; r < R; ++r) {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c) centre.fresh[r][c] = fresh[r][c];
      }
      if (static_cast<std::uint32_t>(z) - free_lo_ >= free_count_) keep_points(z, centre);
      publish(centre.fresh);
      // Plane z - 2 of the first iteration is in the place of plane z + 1.
      level(other_, after.fresh, before.fresh, centre.fresh, before.f, fresh);
      finish(z, before.fresh, fresh);
      this->swap(mine_, other_);
    }
    out_ += this->args_.plane;
  }

 private:
  // One iteration of my rows; `place` is where the old values are among those around.
  CPUFREE_HOT_FN void level(const T* place, const Rows& before, const Rows& centre,
                            const Rows& after, const Rows& f, Rows& out) const {
    T above[C], below[C];
    load_pack(place - kRow, above);
    load_pack(place + R * kRow, below);
    this->sweep(place, before[0], centre[0], after[0], above, centre[1], f[0], out[0]);
    this->sweep(place + kRow, before[1], centre[1], after[1], centre[0], below, f[1], out[1]);
  }

  CPUFREE_HOT_FN void keep_points(std::int32_t z, Plane& centre) const {
    const bool plane = this->free_at(0, z);
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      this->keep(plane && this->free_at(1, row_ + r), centre.old[r], centre.fresh[r]);
  }

  // For the warps next to this one.
  CPUFREE_HOT_FN void publish(const Rows& fresh) const {
    store_pack(mine_, fresh[0]);
    if (both_) store_pack(mine_ + kRow, fresh[1]);
  }

  // Stores the new values of a plane, and measures by how much they differ from the old ones.
  CPUFREE_HOT_FN void finish(std::int32_t z, const Rows& old, const Rows& fresh) const {
    if (kMeasured && z >= from_) {
      CPUFREE_UNROLL
      for (int r = 0; r < R; ++r) {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c)
          if (this->counts(c) && (r == 0 || both_))
            change_.add(0, static_cast<double>(old[r][c]), static_cast<double>(fresh[r][c]));
      }
    }
    T* const next = out_ + this->args_.row;
    if (z >= whole_from_) {
      store_pack(out_, fresh[0]);
      store_pack(next, fresh[1]);
    } else if (z >= from_) {
      this->store(out_, fresh[0]);
      if (both_) this->store(next, fresh[1]);
    }
  }

  Change<P>& change_;
  std::int32_t row_;                // my first one
  std::int32_t until_[R];           // the last step that copies a row
  std::int32_t from_, whole_from_;  // the first one that stores something; all values of the warp
  std::int32_t place_;              // from the window's first value in shared memory
  std::uint32_t free_lo_ = 0, free_count_ = 0;  // planes where none of my points keeps its value
  bool both_;                                   // rows are the window's
  T* out_ = nullptr;
  const T* source_ = nullptr;
  T *mine_ = nullptr, *other_ = nullptr;  // between two iterations, of this plane and the other
};

}  // namespace cpufree
