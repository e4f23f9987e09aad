// Messages of MPI between two processes that mpirun has started, timed by rank 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/baselines/messages/memory.hpp"

namespace cpufree::baselines {

class MpiMessages {
 public:
  // Starts MPI. kind: of MessageMemory. gpus: of ranks 0 and 1, where they have any. Throws
  // Unsupported where this MPI takes no addresses of GPU memory.
  MpiMessages(const std::string& kind, const std::vector<int>& gpus, std::int64_t bytes);

  int rank() const { return rank_; }
  // What rank 0 says, to both.
  static std::string broadcast(std::string text);
  // The last call of both ranks.
  static void finish();
  // Ends both processes: for errors after which they no longer make the same calls.
  [[noreturn]] static void abort(int status);

  // The same call on both ranks; seconds on rank 0. mode: single, half of a round trip; window,
  // several messages one way and 8 bytes back; send, the call alone. Throws InvalidInput,
  // EngineError.
  std::vector<double> times(const std::string& mode, std::int64_t bytes, int messages, int warm_ups,
                            int repeats);

 private:
  double once(const std::string& mode, std::int64_t bytes, int messages);
  void send(std::int64_t place, std::int64_t bytes);
  void receive(std::int64_t place, std::int64_t bytes);
  void check_values(std::int64_t bytes);

  int rank_ = 0;
  std::int64_t bytes_;
  std::unique_ptr<MessageMemory> memory_;
};

}  // namespace cpufree::baselines
