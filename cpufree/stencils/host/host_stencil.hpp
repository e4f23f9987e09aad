// A stencil laid out in the memory of the host, for engines whose kernels run there.
#pragma once

#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/launch/cpu/process_heaps.hpp"
#include "cpufree/stencils/host/stencil_heap.hpp"
#include "cpufree/stencils/host/stencil_plan.hpp"

namespace cpufree {

template <class T>
class HostStencil {
 public:
  // All of them must outlive the stencil. With a team, it is that of the PE of this process.
  HostStencil(const StencilProblem<T>& problem, const StencilLayout& layout, const StencilRun& run,
              Team* team = nullptr)
      : layout_(layout),
        own_(OwnPes::of(team, layout.plan.pes)),
        heap_(layout.tiling, layout.packets),
        heaps_(team != nullptr ? CpuHeaps(*team, heap_.bytes) : CpuHeaps(own_.all, heap_.bytes)),
        args_(at(own_.here)) {
    pes_.reserve(args_.size());
    for (int pe = own_.first; pe < own_.first + own_.here; ++pe) {
      const std::vector<Tile>& tiles = layout.tiling.tiles[at(pe)];
      reserve(tiles, !problem.source.empty());
      JacobiArgs<T>& a = args(pe);
      a = arguments_of<T>(layout, run);
      a.tiles = pes_.back().views.data();
      place_grid(problem, tiles, team != nullptr, a, pes_.back());
      a.updates = pes_.back().updates.data();
      a.outcome = &outcome_;
      heap_.place(a, heaps_.base(pe));
    }
  }

  const OwnPes& own() const { return own_; }
  std::byte* const* heaps() const { return heaps_.bases(); }
  // Of a PE of this process.
  const JacobiArgs<T>& args(int pe) const { return args_[at(pe - own_.first)]; }
  JacobiArgs<T>& args(int pe) { return args_[at(pe - own_.first)]; }
  Flag* leave_flag() const { return heap_.leave.at(heaps_.base(own_.first)); }
  // With a team: the values that the PE of this process owns, after a run.
  const std::vector<T>& values() const { return pes_.front().out; }

  StencilResult result(double seconds) const {
    StencilResult result{outcome_, 0.0, seconds, layout_.plan};
    for (const Pe& pe : pes_) result.update = largest_update(pe.updates, result.update);
    return result;
  }

 private:
  struct Pe {
    std::vector<cpu_threads::Array<T>> arrays;
    std::vector<TileArgs<T>> views;
    std::vector<double> updates;
    std::vector<T> start, source, out;  // of its part of the grid, where all of it is not here
  };

  // The values of the grid: where the caller has them, or in parts.
  static void place_grid(const StencilProblem<T>& problem, const std::vector<Tile>& tiles,
                         bool own_part, JacobiArgs<T>& a, Pe& pe) {
    const Grid& grid = problem.grid;
    const GridSpan stored = span_of(tiles, true);
    a.start = problem.start.view(grid, stored, pe.start);
    a.source = problem.source.view(grid, stored, pe.source);
    if (!own_part) {
      a.out = all_of(grid).view(grid, problem.out.data());
      return;
    }
    const GridSpan written = span_of(tiles, false);
    pe.out.resize(at(written.points()));
    a.out = written.view(grid, pe.out.data());
  }

  void reserve(const std::vector<Tile>& tiles, bool source) {
    Pe& pe = pes_.emplace_back();
    pe.updates.resize(tiles.size() * at(layout_.plan.threads));
    for (const Tile& tile : tiles) {
      TileArgs<T>& view = pe.views.emplace_back();
      view.shape = tile.shape;
      view.sends = tile.sends.data();
      view.receives = tile.receives.data();
      view.edges = static_cast<std::int32_t>(tile.sends.size());
      const auto array = [&](std::int64_t values) {
        return pe.arrays.emplace_back(at(values)).data() + tile.shape.lead;
      };
      view.values = array(tile.shape.values());
      if (source) view.source = array(tile.shape.source_values());
    }
  }

  const StencilLayout& layout_;
  OwnPes own_;
  StencilHeap<T> heap_;
  CpuHeaps heaps_;
  std::vector<JacobiArgs<T>> args_;
  std::vector<Pe> pes_;
  StencilOutcome outcome_;
};

}  // namespace cpufree
