#include "cpufree/problem/blocks/block_cut.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition/row_graph.hpp"

namespace cpufree {

namespace {

// Some nodes of a graph, a run of Bisection's list, that are to be shared among some blocks.
struct Part {
  int pe = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t start = 0;  // a node at one end of it: u
  std::int32_t first = 0;  // block: what tells the part from all others
  int blocks = 1;
};

// The state of one PE's graph. Parts of a graph may be split on several threads at once: each
// touches its own nodes and its own run, and looks at the labels of others, which never are its
// own.
class Bisection {
 public:
  Bisection() = default;
  explicit Bisection(RowGraph graph)
      : graph_(std::move(graph)),
        list_(at(graph_.nodes())),
        queue_(list_.size()),
        from_(list_.size()),
        to_(list_.size()),
        label_(list_.size(), 0) {
    std::iota(list_.begin(), list_.end(), 0);
  }

  // All nodes, for N blocks.
  Part whole(int pe, int blocks) {
    Part part{pe, 0, graph_.nodes(), 0, 0, blocks};
    if (graph_.nodes() > 0) part.start = search(part, 0, from_);
    return part;
  }

  // The two parts of one part that has several blocks. Each starts where it is furthest from the
  // other.
  std::pair<Part, Part> split(const Part& part) {
    const std::int32_t v = search(part, part.start, from_);
    std::copy(queue_.begin() + part.begin, queue_.begin() + part.end, list_.begin() + part.begin);
    search(part, v, to_);
    sort_by_difference(part);
    const int blocks = part.blocks / 2;
    const std::int32_t middle = cut_at(part, blocks);
    Part low = part, high = part;
    low.end = high.begin = middle;
    low.blocks = blocks;
    high.blocks -= blocks;
    high.first += blocks;
    low.start = list_[at(part.begin)];
    high.start = list_[at(part.end - 1)];
    for (std::int32_t k = middle; k < part.end; ++k) label(list_[at(k)]).store(high.first, kAny);
    return {low, high};
  }

  // Once parts have one block each.
  std::vector<std::int32_t> blocks_of_rows() const {
    constexpr std::size_t kRows = 50'000;  // that are worth a thread
    std::vector<std::int32_t> blocks(graph_.node.size());
    in_parallel(static_cast<int>(blocks.size() / kRows) + 1, [&](int k) {
      const std::size_t end = std::min(blocks.size(), (at(k) + 1) * kRows);
      for (std::size_t row = at(k) * kRows; row < end; ++row)
        blocks[row] = label_[at(graph_.node[row])];
    });
    return blocks;
  }

 private:
  static constexpr auto kAny = std::memory_order_relaxed;
  std::atomic_ref<std::int32_t> label(std::int32_t node) {
    return std::atomic_ref(label_[at(node)]);
  }

  // Breadth first from `root`: the distances of the part's nodes, in whose order they then are in
  // the queue. What cannot be reached follows behind, from where the list names it first. Returns
  // the last node.
  std::int32_t search(const Part& part, std::int32_t root, std::vector<std::int32_t>& distance) {
    for (std::int32_t k = part.begin; k < part.end; ++k) distance[at(list_[at(k)])] = -1;
    std::int32_t unseen = part.begin, end = part.begin;
    const auto reach = [&](std::int32_t node, std::int32_t far) {
      distance[at(node)] = far;
      queue_[at(end++)] = node;
    };
    reach(root, 0);
    for (std::int32_t k = part.begin; k < part.end; ++k) {
      if (k == end) {
        while (distance[at(list_[at(unseen)])] >= 0) ++unseen;
        reach(list_[at(unseen)], distance[at(queue_[at(k - 1)])] + 1);
      }
      const std::int32_t node = queue_[at(k)];
      for (auto e = graph_.ptr[at(node)]; e < graph_.ptr[at(node) + 1]; ++e) {
        const std::int32_t other = graph_.to[at(e)];
        if (label(other).load(kAny) == part.first && distance[at(other)] < 0)
          reach(other, distance[at(node)] + 1);
      }
    }
    return queue_[at(part.end - 1)];
  }

  // The part's list by the difference of the two distances; of equal ones, in the sequence that the
  // list has: that of the search from u, in which neighbours follow one another.
  void sort_by_difference(const Part& part) {
    const auto difference = [&](std::int32_t node) { return from_[at(node)] - to_[at(node)]; };
    const auto nodes = std::span(list_).subspan(at(part.begin), at(part.end - part.begin));
    std::int32_t least = difference(nodes[0]), most = least;
    for (const std::int32_t node : nodes) {
      least = std::min(least, difference(node));
      most = std::max(most, difference(node));
    }
    std::vector<std::int32_t> place(at(most - least) + 2, part.begin);
    for (const std::int32_t node : nodes) ++place[at(difference(node) - least) + 1];
    for (std::size_t k = 1; k < place.size(); ++k) place[k] += place[k - 1] - part.begin;
    for (const std::int32_t node : nodes) queue_[at(place[at(difference(node) - least)]++)] = node;
    std::copy(queue_.begin() + part.begin, queue_.begin() + part.end, nodes.begin());
  }

  // Where the list is cut, so that its first piece has the weight of N of the part's blocks.
  std::int32_t cut_at(const Part& part, int blocks) const {
    std::int64_t all = 0;
    for (std::int32_t k = part.begin; k < part.end; ++k) all += graph_.weight[at(list_[at(k)])];
    const std::int64_t goal = all / part.blocks * blocks + all % part.blocks * blocks / part.blocks;
    std::int64_t before = 0;
    std::int32_t k = part.begin;
    for (; k < part.end; ++k) {
      const std::int64_t weight = graph_.weight[at(list_[at(k)])];
      if (2 * before + weight > 2 * goal) break;
      before += weight;
    }
    return k;
  }

  RowGraph graph_;
  std::vector<std::int32_t> list_;  // nodes, part after part
  std::vector<std::int32_t> queue_, from_, to_;
  std::vector<std::int32_t> label_;  // of each node: `first` of its part
};

class Cut {
 public:
  Cut(std::vector<Bisection> graphs, int blocks) : graphs_(std::move(graphs)) {
    std::vector<Part> parts(graphs_.size());
    in_parallel(static_cast<int>(parts.size()),
                [&](int pe) { parts[at(pe)] = graphs_[at(pe)].whole(pe, blocks); });
    std::erase_if(parts, [](const Part& part) { return !is_to_split(part); });
    // All cores split parts until there are some for each, and then each its own to the end.
    while (!parts.empty() && static_cast<int>(parts.size()) < 2 * available_cores())
      parts = split_all(parts);
    in_parallel(static_cast<int>(parts.size()), [&](int k) { finish(parts[at(k)]); });
  }
  const Bisection& of(std::size_t pe) const { return graphs_[pe]; }

 private:
  static bool is_to_split(const Part& part) { return part.blocks > 1 && part.begin < part.end; }

  std::vector<Part> split_all(const std::vector<Part>& parts) {
    std::vector<std::pair<Part, Part>> halves(parts.size());
    in_parallel(static_cast<int>(parts.size()),
                [&](int k) { halves[at(k)] = graphs_[at(parts[at(k)].pe)].split(parts[at(k)]); });
    std::vector<Part> next;
    for (const auto& [low, high] : halves)
      for (const Part& part : {low, high})
        if (is_to_split(part)) next.push_back(part);
    return next;
  }

  void finish(const Part& part) {
    std::vector<Part> left{part};
    while (!left.empty()) {
      const Part next = left.back();
      left.pop_back();
      const auto [low, high] = graphs_[at(next.pe)].split(next);
      for (const Part& half : {low, high})
        if (is_to_split(half)) left.push_back(half);
    }
  }

  std::vector<Bisection> graphs_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> cut_among_blocks(const std::vector<RowPattern>& pes,
                                                        int blocks) {
  std::vector<Bisection> graphs(pes.size());
  in_parallel(static_cast<int>(pes.size()),
              [&](int pe) { graphs[at(pe)] = Bisection(graph_of_rows(pes[at(pe)], blocks)); });
  const Cut cut(std::move(graphs), blocks);
  std::vector<std::vector<std::int32_t>> owner(pes.size());
  for (std::size_t pe = 0; pe < pes.size(); ++pe) owner[pe] = cut.of(pe).blocks_of_rows();
  return owner;
}

}  // namespace cpufree
