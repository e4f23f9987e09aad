// Ways of a message to another GPU in which the host takes part: what it calls, and how long that
// takes. Each is a class of its own behind one verb.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cpufree {

struct HostWaySpec {
  // copy: the copy engine, on a stream of the sender. copy-get: of the receiver. copy-graph: in a
  // graph. managed: pages that the host has written migrate to the kernel that reads them. pinned:
  // a thread of the host and a kernel, each of which stores into memory of the host. proxy: a
  // kernel asks, and a thread of the host has the copy engine do it. nccl: ncclSend and ncclRecv.
  // ipc: the copy engine, to memory of another process. nvshmem-p, -iput, -put-thread, -put-warp,
  // -put-block, -put-signal, -get: its device library, within a kernel; nvshmem-put-stream,
  // -get-stream: its functions of the host.
  std::string way;
  std::vector<int>
      gpus;  // the sender's, the receiver's, which may be one; nvshmem: that of this process
  std::int64_t bytes = 0;    // of the largest window
  std::string library = {};  // nccl, nvshmem: its path, "" for where the system looks
  std::string handle = {};   // ipc: of the memory, see IpcMemory; nvshmem: make_shmem_way_id's
  std::string kernels = {};  // nvshmem, within a kernel: the file that has it
  int rank = 0;              // nvshmem: of this process, which makes the way when rank 1's does
};

struct HostOrder {
  // single: a message, until the host knows of its end; of `pinned` and kernels, one way. window:
  // several, and of them all. send: the call alone. launch: kernels that do nothing, until the host
  // knows of the last one's end. queue: the calls alone.
  std::string mode;
  std::int64_t bytes = 8;  // of a message: a multiple of 8
  int messages = 1;        // of a window; kernels
  int warm_ups = 0;
  int repeats = 1;
  double wait_limit = 60.0;  // seconds of each wait
};

class HostWay {
 public:
  virtual ~HostWay() = default;
  // The seconds of each repeat. Throws InvalidInput for a mode that the way has not, or messages
  // that find no room; EngineError, WaitTimeout.
  virtual std::vector<double> times(const HostOrder& order) = 0;
};

// Throws InvalidInput, Unsupported, OutOfMemory, EngineError.
std::unique_ptr<HostWay> make_host_way(const HostWaySpec& spec);

// Memory of a GPU that other processes write to, as long as this lives.
class IpcMemory {
 public:
  virtual ~IpcMemory() = default;
  virtual std::string handle() const = 0;
};
std::unique_ptr<IpcMemory> make_ipc_memory(int gpu, std::int64_t bytes);

// An identity by which two processes find one another: one makes it, and tells the other.
// `library`: the path of NVSHMEM's, "" for where the system looks.
std::string make_shmem_way_id(const std::string& library);

}  // namespace cpufree
