// Runs on grids by members of a team, each of which asks for its own part of the values.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "stencil_rig.hpp"

namespace stencil_rig {

// What a member has of a run: the box, and the values there.
template <class T>
struct Part {
  GridSpan box{};
  std::vector<T> values;
  int rooms = 0;          // that were asked for
  std::int64_t read = 0;  // first values that were asked for
  StencilResult result;
};

// Runs `c` with a team. `by_boxes`: the values come from functions.
template <class T>
Part<T> run_part(Case<T>& c, const std::shared_ptr<Team>& team, bool by_boxes = true) {
  Part<T> part;
  StencilSpec spec = c.spec;
  spec.team = team;
  spec.pes = team->size();
  const auto reader = [&](const std::vector<T>& all) {
    return GridValues<T>::by_boxes([&](const GridSpan& box, T* to) {
      part.read += box.points();
      box.each(c.grid, [&](std::size_t k, std::size_t i) { to[k] = all[i]; });
    });
  };
  StencilProblem<T> problem{c.grid, c.start, c.source, {}};
  if (by_boxes) problem.start = reader(c.start);
  if (by_boxes && !c.source.empty()) problem.source = reader(c.source);
  problem.room = [&](const GridSpan& box) {
    part.box = box;
    ++part.rooms;
    part.values.assign(static_cast<std::size_t>(box.points()), T{-77});
    return part.values.data();
  };
  part.result = run_stencil<T>(problem, spec, c.run, {});
  return part;
}

// Whether a part has the bits that `all` has there.
template <class T>
bool same_part(const Grid& grid, const Part<T>& part, const std::vector<T>& all) {
  std::vector<T> expected(part.values.size());
  part.box.each(grid, [&](std::size_t k, std::size_t i) { expected[k] = all[i]; });
  return part.rooms == 1 && same_bits(part.values, expected);
}

}  // namespace stencil_rig
