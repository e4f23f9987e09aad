// Values at the points of a grid, wherever they come from: memory that holds all of them, or who
// has them and is asked for boxes.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "cpufree/stencils/host/grid_span.hpp"

namespace cpufree {

// All points of a grid.
inline GridSpan all_of(const Grid& grid) { return {{0, 0, 0}, {grid.n[0], grid.n[1], grid.n[2]}}; }

template <class T>
class GridValues {
 public:
  // Writes the values of a box to memory, in the order of the grid's axes. The box lies inside the
  // grid, and has points.
  using Reader = std::function<void(const GridSpan&, T*)>;

  GridValues() = default;  // none
  // In memory that outlives them, in the order of the grid's axes.
  template <class R>
    requires std::convertible_to<const R&, std::span<const T>>
  GridValues(const R& all) : all_(all) {}
  static GridValues by_boxes(Reader read) {
    GridValues values;
    values.read_ = std::move(read);
    return values;
  }

  bool empty() const { return all_.empty() && !read_; }
  bool in_memory() const { return !read_; }
  std::span<const T> all() const { return all_; }

  // Those of a box; numbers outside a periodic grid stand for those inside.
  std::vector<T> copy(const Grid& grid, const GridSpan& box) const {
    std::vector<T> values(at(box.points()));
    if (in_memory())
      box.each(grid, [&](std::size_t k, std::size_t i) { values[k] = all_[i]; });
    else
      read(grid, box, values);
    return values;
  }

  // The same where they lie, if that is memory; else copied to `memory`, which the view is of.
  GridView<const T> view(const Grid& grid, const GridSpan& box, std::vector<T>& memory) const {
    if (empty()) return {};
    if (in_memory()) return all_of(grid).template view<const T>(grid, all_.data());
    memory = copy(grid, box);
    return box.view<const T>(grid, memory.data());
  }

 private:
  // Numbers lo to hi of an axis of the grid, which lie at `place` of the box.
  struct Piece {
    std::int64_t place, lo, hi;
  };
  static std::vector<Piece> pieces(const Grid& grid, const GridSpan& box, int a) {
    std::vector<Piece> all;
    const std::int64_t n = grid.n[a];
    for (std::int64_t i = box.lo[a]; i < box.hi[a]; i += all.back().hi - all.back().lo) {
      const std::int64_t inside = (i % n + n) % n;
      all.push_back({i - box.lo[a], inside, std::min(n, inside + box.hi[a] - i)});
    }
    return all;
  }

  // Asks for the pieces of the box that lie in the grid in one, and puts them together.
  void read(const Grid& grid, const GridSpan& box, std::vector<T>& values) const {
    std::vector<T> part;
    const auto pieces0 = pieces(grid, box, 0), pieces1 = pieces(grid, box, 1),
               pieces2 = pieces(grid, box, 2);
    for (const Piece& p0 : pieces0)
      for (const Piece& p1 : pieces1)
        for (const Piece& p2 : pieces2) {
          const GridSpan inside{{p0.lo, p1.lo, p2.lo}, {p0.hi, p1.hi, p2.hi}};
          if (inside.points() == box.points()) return read_(inside, values.data());
          part.resize(at(inside.points()));
          read_(inside, part.data());
          const T* from = part.data();
          for (std::int64_t i0 = 0; i0 < inside.extent(0); ++i0)
            for (std::int64_t i1 = 0; i1 < inside.extent(1); ++i1, from += inside.extent(2)) {
              const std::int64_t row = (p0.place + i0) * box.extent(1) + p1.place + i1;
              std::copy_n(from, inside.extent(2), values.begin() + row * box.extent(2) + p2.place);
            }
        }
  }

  std::span<const T> all_;
  Reader read_;
};

}  // namespace cpufree
