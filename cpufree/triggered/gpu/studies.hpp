// Studies of triggered operations on GPUs: the same as on CPU threads (../studies.hpp), and what
// only GPUs have. With one device twice, both PEs are on it, and copies stay inside it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cpufree/triggered/device/vector_allreduce.hpp"
#include "cpufree/triggered/jacobi.hpp"
#include "cpufree/triggered/studies.hpp"

namespace cpufree::triggered {

using Look = std::function<void()>;

struct GpuMessageStudy {
  std::vector<int> devices{0, 1};
  Path path = Path::triggered;
  std::string back_end = "copy_engine";  // where `path` is triggered
  std::uint64_t bytes = 64;
  int rounds = 20;
  int blocks = 1;                        // of the initiator's kernel, all of which trigger or store
  double before = 20e-6, after = 20e-6;  // seconds that the kernel is busy
  PostOrder order = PostOrder::ahead;
  double wait_limit = 10.0;
};
struct GpuMessages {
  std::vector<MessageTimes> times;
  double host_error = 0.0, pair_error = 0.0;  // of the common clock, seconds
};
// At the kernel's end (GPU-direct Sync) a copy stands behind the kernel on its stream.
GpuMessages measure_gpu_messages(const GpuMessageStudy& study, const Look& look);

// Copies that a kernel triggers while it computes on all multiprocessors.
struct OverlapStudy {
  std::vector<int> devices{0, 1};
  std::string back_end = "copy_engine";
  std::uint64_t bytes = 8 << 20;
  int copies = 16;
  int tags = 4;  // that take turns: as many copies are under way at a time, where the NIC can
  int rounds = 5;
  double seconds = 500e-6;  // of arithmetic, about
  double wait_limit = 10.0;
};
struct OverlapTimes {
  double alone = 0.0;       // the kernel without copies, seconds
  double beside = 0.0;      // with copies
  double all_seen = 0.0;    // from the kernel's beginning to the last copy seen
  double one_copy = 0.0;    // of these: the latency of the first trigger is in it
  double plain_copy = 0.0;  // of copies in a row on a stream, no kernel running
};
std::vector<OverlapTimes> measure_overlap(const OverlapStudy& study, const Look& look);

struct GpuReduceStudy {
  std::vector<int> devices{0, 1};
  ReduceWay way = ReduceWay::direct;
  std::string by = "stores";  // or "packets", or a back end
  bool single = true;
  int blocks = 16, threads = 512;
  std::int64_t count = 1024;
  std::uint32_t repeats = 100;
  double wait_limit = 10.0;
};
// Seconds of one all-reduce: the mean of `repeats` in a row, of the slowest PE. First some are
// checked, value by value; throws EngineError where a sum is wrong. Those that are timed sum what
// the one before has left, zeros in the end.
double measure_gpu_allreduce(const GpuReduceStudy& study, const Look& look);

// How halos of Jacobi iterations travel: by triggered puts in one kernel; copied behind a kernel
// for each iteration, without the host (GDS); or by the host, which waits for each kernel (HDN).
enum class GpuJacobiWay { triggered, at_end, host };
struct GpuJacobiRun {
  std::vector<int> devices{0, 1};
  GpuJacobiWay way = GpuJacobiWay::triggered;
  std::string back_end = "copy_engine";
  std::int64_t rows = 0;
  std::int32_t columns = 0;
  int blocks = 32, threads = 512;
  std::uint32_t iterations = 0;
  double wait_limit = 10.0;
};
// As jacobi of CPU threads (../jacobi.hpp).
template <class T>
double gpu_jacobi(const GpuJacobiRun& run, T* u, const Look& look);
extern template double gpu_jacobi(const GpuJacobiRun&, float*, const Look&);
extern template double gpu_jacobi(const GpuJacobiRun&, double*, const Look&);

// A long run: each PE sends `words` 8-byte words to the next one, epoch after epoch, by each of
// some channels, which are independent of one another and have `blocks` blocks each.
struct SoakStudy {
  std::vector<int> devices{0, 1};
  std::string back_end = "copy_engine";
  std::int64_t words = 8;
  int channels = 1;
  int blocks = 1;
  std::uint32_t epochs = 1000;  // of each channel
  double wait_limit = 10.0;
};
struct SoakResult {
  double seconds = 0.0;
  std::uint64_t wrong = 0;     // words
  std::uint64_t checksum = 0;  // of all that came
  std::uint64_t expected = 0;  // what it should be
};
SoakResult run_soak(const SoakStudy& study, const Look& look);

// `blocks` x `threads` threads trigger one tag of their NIC, `items` times a block.
struct FloodStudy {
  std::vector<int> devices{0};
  std::string back_end = "copy_engine";
  int blocks = 32, threads = 128;
  std::int64_t items = 1000;
  double wait_limit = 30.0;
};
// Seconds. Throws EngineError where the operation did not fire exactly once, after all triggers.
double run_flood(const FloodStudy& study, const Look& look);

}  // namespace cpufree::triggered
