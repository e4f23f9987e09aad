#include "cpufree/engines/cpu_threads/launch.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "cpufree/base/cores.hpp"
#include "cpufree/base/error.hpp"

namespace cpufree::cpu_threads {

namespace {

// The other processes are on this machine, and have as many threads each.
Workers::Config workers_for(const LaunchConfig& config, int here) {
  const int cores = std::max(1, available_cores() - config.beside);
  const int processes = config.pes / here;
  Workers::Config workers;
  workers.blocks = here * config.blocks;
  workers.threads = std::max(1, cores / processes);
  workers.alone = processes == 1;
  workers.crowded = processes > cores || config.beside >= available_cores();
  return workers;
}

}  // namespace

Launch::Launch(const LaunchConfig& config, std::function<void(Port&)> kernel)
    : kernel_(std::move(kernel)) {
  const int here = config.here > 0 ? config.here : config.pes;
  shared_.pes = config.pes;
  shared_.blocks = config.blocks;
  shared_.first = config.first;
  shared_.heaps = config.heaps;
  shared_.remote = config.remote;
  shared_.leave_flag = config.leave_flag;
  shared_.wait_limit = config.wait_limit;
  shared_.records.assign(static_cast<std::size_t>(here * config.blocks), WaitRecord{});
  try {
    workers_ = std::make_unique<Workers>(
        workers_for(config, here), [this](int number, Seat& seat) { run_block(number, seat); },
        Load::here());
  } catch (const std::system_error& e) {
    throw EngineError(std::string("no thread can be started (") + e.what() +
                      "); raise the limit of processes (ulimit -u)");
  }
}

Launch::~Launch() {
  if (workers_->wait_for(std::chrono::milliseconds(0))) return;
  shared_.tell_all();               // ends waits, and
  shared_.notes |= kNoteInterrupt;  // solves that never wait
}

void Launch::run_block(int number, Seat& seat) {
  Port port(shared_, shared_.first + number / shared_.blocks, number % shared_.blocks, &seat);
  port.record().state = BlockState::running;
  kernel_(port);
  if (port.record().state == BlockState::running) port.record().state = BlockState::finished;
}

bool Launch::wait_for(std::chrono::milliseconds patience) { return workers_->wait_for(patience); }

void run_here(std::byte* const* heaps, const std::function<void(Port&)>& kernel,
              const std::function<unsigned(std::int64_t, double)>& host) {
  Shared shared;
  shared.heaps = heaps;
  shared.records.assign(1, WaitRecord{});
  shared.host = [&] { return host(shared.iteration, shared.residual); };
  Port port(shared, 0, 0);
  kernel(port);
}

}  // namespace cpufree::cpu_threads
