#include "cpufree/probes/gpu/litmus.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/launch/gpu/heaps.hpp"
#include "cpufree/launch/gpu/node_arrays.hpp"
#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/probes/gpu/litmus_args.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kMost = 16384;  // values of a message
// Messages that a card copies into its request, of a page, and of many.
struct Series {
  std::int64_t values, rounds;
};
constexpr Series kSeries[] = {{1, 2000}, {500, 1000}, {kMost, 200}};

// What each process has in symmetric memory.
struct Room {
  double source[2 * kMost];
  double target[2 * kMost];
  Flag flags[2];
  Flag leave;
};

class LitmusRun {
 public:
  LitmusRun(const LitmusSpec& spec, const NodeTable& nodes)
      : spec_(spec),
        nodes_(nodes),
        heaps_(*spec.team, spec.library, spec.gpu, sizeof(Room), nodes),
        arrays_(spec.gpu, nodes),
        wrong_(spec.gpu, std::size_t{kLitmusThreads}),
        runner_({spec.gpu}, 1) {
    kernel_.function =
        remote_kernel(*spec.team, spec.library.engine, spec.kernels, "cpufree_litmus");
    kernel_.threads = kLitmusThreads;
    runner_.load(kernel_);
  }

  // Messages of this process, and what was wrong with them.
  void run(const Series& series, int shift, Litmus& found) {
    Room& room = *reinterpret_cast<Room*>(heaps_.base(me()));
    RemoteLitmusArgs args;
    const auto partner = partner_of(shift);
    args.litmus = {partner.value_or(me()),
                   partner ? series.rounds : 0,
                   series.values,
                   room.source,
                   room.target,
                   room.flags,
                   wrong_.data()};
    args.seat = {{arrays_.view(), {}, nullptr}, me(), spec_.team->size()};
    gpu::clear(spec_.gpu, &room, sizeof room);
    barrier(*spec_.team, "flags are clear");
    Limits limits;
    limits.wait_limit = spec_.wait_limit;
    runner_.run(kernel_, {shared(room)}, {&args}, limits, {}, spec_.team.get());
    const auto wrong = wrong_.download();
    found.messages += args.litmus.rounds;
    found.wrong += std::accumulate(wrong.begin(), wrong.end(), std::int64_t{0});
  }

 private:
  int me() const { return spec_.team->rank(); }

  // The PE at the same place of the node whose number differs by the bits of `shift`.
  std::optional<int> partner_of(int shift) const {
    const Nodes all = nodes_.view();
    const int other = all.of_pe[me()] ^ shift;
    if (other >= all.count || all.place[me()] >= all.size(other)) return std::nullopt;
    return all.pe(other, all.place[me()]);
  }

  gpu_p2p::Shared shared(Room& room) const {
    const Nodes all = nodes_.view();
    const int node = all.of_pe[me()];
    gpu_p2p::Shared shared;
    shared.pe = all.place[me()];
    shared.pes = all.size(node);
    for (int at = 0; at < shared.pes; ++at) shared.heaps[at] = heaps_.base(all.pe(node, at));
    shared.leave = &room.leave;
    return shared;
  }

  const LitmusSpec& spec_;
  const NodeTable& nodes_;
  GpuHeaps heaps_;
  NodeArrays arrays_;
  gpu::DeviceArray<std::uint64_t> wrong_;
  GpuRunner runner_;
  GpuKernel kernel_;
};

}  // namespace

Litmus run_litmus(const LitmusSpec& spec) {
  Team& team = *spec.team;
  gpu::stay_on(spec.gpu);
  const NodeTable nodes = spec.node_size > 0 ? NodeTable::of_size(team.size(), spec.node_size)
                                             : nodes_of(team, spec.library, spec.gpu, sizeof(Room));
  Litmus found;
  found.nodes = nodes.count();
  if (found.nodes == 1) return found;
  require(nodes.largest() <= gpu_p2p::kMaxPes, "a node has " + std::to_string(nodes.largest()) +
                                                   " PEs, of which it may have " +
                                                   std::to_string(gpu_p2p::kMaxPes));
  LitmusRun run(spec, nodes);
  for (int shift = 1; shift < found.nodes; ++shift)
    for (const Series& series : kSeries) run.run(series, shift, found);
  for (std::int64_t* const number : {&found.messages, &found.wrong}) {
    const auto all = each(team, "what the litmus test has found", *number);
    *number = std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }
  return found;
}

}  // namespace cpufree
