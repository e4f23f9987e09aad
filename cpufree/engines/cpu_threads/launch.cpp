#include "cpufree/engines/cpu_threads/launch.hpp"

#include <string>
#include <system_error>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/cpu_threads/bootstrap.hpp"

namespace cpufree::cpu_threads {

Launch::Launch(const LaunchConfig& config, std::function<void(Port&)> kernel)
    : kernel_(std::move(kernel)) {
  const int here = config.here > 0 ? config.here : config.pes;
  const int in_all = here * config.blocks;
  shared_.pes = config.pes;
  shared_.blocks = config.blocks;
  shared_.first = config.first;
  shared_.heaps = config.heaps;
  shared_.remote = config.remote;
  shared_.leave_flag = config.leave_flag;
  shared_.wait_limit = config.wait_limit;
  shared_.spins = spins_for(config.pes * config.blocks);  // the other processes are on this machine
  shared_.records.assign(static_cast<std::size_t>(in_all), WaitRecord{});
  running_ = in_all;
  threads_.reserve(static_cast<std::size_t>(in_all));
  try {
    for (int pe = config.first; pe < config.first + here; ++pe)
      for (int block = 0; block < config.blocks; ++block)
        threads_.emplace_back([this, pe, block] { run_block(pe, block); });
  } catch (const std::system_error& e) {
    tell_to_end();  // those that run already must not wait for those that never will
    const std::size_t started = threads_.size();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    throw EngineError("could start only " + std::to_string(started) + " of " +
                      std::to_string(in_all) + " threads (" + e.what() +
                      "); use fewer PEs or blocks, or raise the limit of processes (ulimit -u)");
  }
}

Launch::~Launch() {
  std::unique_lock lock(mutex_);
  if (running_ > 0) tell_to_end();
  lock.unlock();
  for (auto& thread : threads_) thread.join();
}

void Launch::tell_to_end() {
  shared_.tell_all();               // ends waits, and
  shared_.notes |= kNoteInterrupt;  // solves that wait for nobody
}

void Launch::run_block(int pe, int block) {
  Port port(shared_, pe, block);
  port.record().state = BlockState::running;
  kernel_(port);
  if (port.record().state == BlockState::running) port.record().state = BlockState::finished;
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) ended_.notify_all();
}

void run_here(std::byte* const* heaps, const std::function<void(Port&)>& kernel,
              const std::function<unsigned(std::int64_t, double)>& host) {
  Shared shared;
  shared.heaps = heaps;
  shared.records.assign(1, WaitRecord{});
  shared.host = [&] { return host(shared.iteration, shared.residual); };
  Port port(shared, 0, 0);
  kernel(port);
}

bool Launch::wait_for(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, patience, [this] { return running_ == 0; });
}

}  // namespace cpufree::cpu_threads
