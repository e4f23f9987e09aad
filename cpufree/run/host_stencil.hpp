// A stencil laid out in the memory of the host, for engines whose kernels run there.
#pragma once

#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/run/stencil_heap.hpp"
#include "cpufree/run/stencil_plan.hpp"

namespace cpufree {

template <class T>
class HostStencil {
 public:
  // All of them must outlive the stencil.
  HostStencil(const StencilProblem<T>& problem, const StencilLayout& layout, const StencilRun& run)
      : layout_(layout),
        heap_(layout.tiling, layout.packets),
        heaps_(layout.plan.pes, heap_.bytes),
        args_(at(layout.plan.pes)) {
    pes_.reserve(args_.size());
    for (int pe = 0; pe < layout.plan.pes; ++pe) {
      reserve(layout.tiling.tiles[at(pe)], !problem.source.empty());
      JacobiArgs<T>& a = args_[at(pe)];
      a = arguments_of<T>(layout, run);
      a.tiles = pes_.back().views.data();
      a.start = view_of(problem.grid, problem.start.data());
      a.source = view_of(problem.grid, problem.source.data());
      a.out = view_of(problem.grid, problem.out.data());
      a.updates = pes_.back().updates.data();
      a.outcome = &outcome_;
      heap_.place(a, heaps_.base(pe));
    }
  }

  std::byte* const* heaps() const { return heaps_.bases(); }
  const JacobiArgs<T>& args(int pe) const { return args_[at(pe)]; }
  JacobiArgs<T>& args(int pe) { return args_[at(pe)]; }

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
  };

  template <class V>
  static GridView<V> view_of(const Grid& grid, V* data) {
    GridView<V> view;
    view.data = data;
    for (int a = 0; a < 3; ++a) view.extent[a] = view.n[a] = grid.n[a];
    view.row = grid.n[2];
    view.plane = view.row * grid.n[1];
    return view;
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
  StencilHeap<T> heap_;
  cpu_threads::SymmetricHeaps heaps_;
  std::vector<JacobiArgs<T>> args_;
  std::vector<Pe> pes_;
  StencilOutcome outcome_;
};

}  // namespace cpufree
