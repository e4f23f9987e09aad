// The kernel on CPU threads: two PEs of two blocks, each block a thread.
#include <chrono>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/trace/host_trace.hpp"
#include "cpufree/trace/traced.hpp"
#include "report.hpp"

namespace {

int run(int absent, const std::string& trace_file) {
  using namespace std::chrono_literals;
  namespace engine = cpufree::cpu_threads;
  constexpr int pes = 2;
  constexpr int blocks = 2;

  // Symmetric memory: zeros, a heap for each PE.
  const own::Memory memory(pes, blocks);
  const engine::SymmetricHeaps heaps(pes, memory.layout.bytes());
  std::vector<own::Outcome> outcomes(pes);
  std::vector<own::Args> args;
  for (int pe = 0; pe < pes; ++pe) {
    args.push_back(memory.args(heaps.base(pe)));
    args.back().outcome = &outcomes[static_cast<std::size_t>(pe)];
    args.back().absent = absent;
  }

  // One launch starts all blocks of all PEs. The host has nothing to do until they have ended.
  engine::LaunchConfig config;
  config.pes = pes;
  config.blocks = blocks;
  config.heaps = heaps.bases();
  config.wait_limit = absent < 0 ? 60s : 1s;  // longest wait of a block for another
  // With a trace, the same kernel runs on a port that writes down what it does.
  const auto shape = cpufree::TraceShape::of(pes, blocks, 1, 1, 1 << 14, cpufree::kAllTraceKinds);
  const cpufree::HostTrace trace(shape, heaps.bases(), engine::Port::now());
  engine::Launch launch(config, [&](engine::Port& port) {
    const own::Args& mine = args[static_cast<std::size_t>(port.pe())];
    if (trace_file.empty()) return own::kernel(port, mine);
    cpufree::run_traced(port, trace.rings(port.pe()),
                        [&](auto& traced) { own::kernel(traced, mine); });
  });
  while (!launch.wait_for(50ms)) {
  }

  if (!trace_file.empty()) cpufree::write_trace(trace.report(), trace_file);
  const auto& records = launch.records();
  if (own::print_waits(records.data(), records.size(), blocks) > 0) return 1;
  own::print(outcomes[0]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool traces = argc == 3 && std::string(argv[1]) == "--trace";
    return traces ? run(-1, argv[2]) : run(own::absent_pe(argc, argv), "");
  } catch (const cpufree::Error& error) {  // such as no memory, or too few threads
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
