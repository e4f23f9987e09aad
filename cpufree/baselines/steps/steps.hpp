// The arithmetic of an iteration, as functors for gpu_launch.hpp: the recurrences of
// cpufree/solvers, vector updates fused with the sums that follow them and with the packing of the
// halo. Scalars are computed from the totals by every thread alike, which costs no launch.
//
// A host that reads the residual late has launched surplus iterations. They change
// nothing: as soon as the totals say that the solve is over, x, r and the direction stay as they
// are, and so the next totals say it again.
#pragma once

#include <gpu_launch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

#include "cpufree/base/annotate.hpp"
#include "cpufree/baselines/slices.hpp"

namespace cpufree::baselines {

// How a solve stands.
enum class Code : std::uint32_t {
  running,
  converged,
  iterations,  // as many as were asked for
  grown,
  not_finite,
  indefinite_mat,
  indefinite_pc,
  broken_down
};

// Totals of a reduction: on the GPU, or handed over by value where the host has finished it.
template <int K>
struct Totals {
  const double* at = nullptr;
  double value[K] = {};
  CPUFREE_KERNEL_FN double operator[](int k) const { return at != nullptr ? at[k] : value[k]; }
};

// When to stop, in squares of norms. On the GPU.
struct Limits {
  double target = 0.0;
  double bound = 0.0;     // of divergence
  std::uint64_t end = 0;  // epoch after the last iteration (Control::epoch)
};

// How far a solve has come, by one thread of each GPU.
struct Progress {
  std::uint64_t count = 0;  // residuals judged
  std::uint32_t code = 0;   // the first one that is not `running`
};

// What `Progress` says to the host: a packet with the square of the residual's norm. The tag is the
// number of the residual just judged; once the solve is over, that of the one that ended it, with
// the code in the low bits (kNoteBits).
struct Control {
  const Limits* limits = nullptr;
  Progress* progress = nullptr;
  Packet* reached = nullptr;             // host
  const std::uint64_t* epoch = nullptr;  // not null: the GPU counts iterations, host or none
  std::uint32_t epochs = 1;              // in an iteration
  const unsigned* abort = nullptr;
  gpuLoopHandle_t loop = {};
  bool loops = false;  // the GPU decides whether there is another iteration
  bool idle = false;   // nothing is computed: no residual means anything

  // Whether the iteration `before` this one, or this one, is beyond the last.
  CPUFREE_KERNEL_FN bool counted_out(unsigned before = 0) const {
    return (abort != nullptr && *abort != 0) ||
           (epoch != nullptr && *epoch >= limits->end + before * epochs);
  }

  // Whether there is an iteration after this one, where their number is all that counts: a body of
  // the loop that would be beyond the last one is not begun.
  CPUFREE_KERNEL_FN bool another() const {
    return !counted_out() && (epoch == nullptr || *epoch + epochs < limits->end);
  }

  // The residual whose square is rr; of the iteration `before` this one.
  CPUFREE_KERNEL_FN Code judge(double rr, unsigned before = 0) const {
    if (!(rr - rr == 0.0)) return Code::not_finite;
    if (rr <= limits->target || rr == 0.0) return Code::converged;
    if (rr > limits->bound) return Code::grown;
    return counted_out(before) ? Code::iterations : Code::running;
  }

  CPUFREE_KERNEL_FN void tell(Code code, double rr) const {
    const bool exact = idle || limits->target < 0.0;  // goes on whatever the residual
    if (loops) set_loop(loop, exact ? another() : code == Code::running);
    const std::uint64_t number = progress->count++;
    if (progress->code != 0) return;
    if (idle) code = counted_out() ? Code::iterations : Code::running;
    progress->code = static_cast<std::uint32_t>(code);
    store_packet(reached, rr, make_tag(number, progress->code));
  }
};

// Where boundary values go: into a buffer that the host sends, or straight to the neighbours.
template <class T>
struct Outbox {
  std::int32_t interior = 0;
  const std::int64_t* send_ptr = nullptr;  // boundary rows + 1
  const std::int32_t* place = nullptr;     // in the buffer
  T* buffer = nullptr;                     // null: the neighbours' packets
  Packet* const* packet = nullptr;         // of parity 0
  const std::uint64_t* epoch = nullptr;

  CPUFREE_KERNEL_FN void put(std::int32_t row, T value) const {
    if (row < interior) return;
    for (std::int64_t k = send_ptr[row - interior]; k < send_ptr[row - interior + 1]; ++k) {
      if (buffer != nullptr)
        buffer[place[k]] = value;
      else
        store_packet(packet[k] + (*epoch & 1U), value, *epoch);
    }
  }
};

// (M v)(i); M = D^-1, or I where there is no diagonal.
template <class T>
CPUFREE_KERNEL_FN T preconditioned(const T* inverse, const T* v, std::int32_t i) {
  return inverse != nullptr ? inverse[i] * v[i] : v[i];
}

struct Nothing {};

// Limits of a solve, once b . b is known. One thread.
struct SetLimits {
  Totals<1> bb;
  double rtol;  // negative: no residual ends the solve
  const std::uint64_t* epoch;
  std::uint64_t epochs_left;
  Limits* limits;

  CPUFREE_KERNEL_FN Nothing begin(bool first) const {
    if (!first) return {};
    constexpr double kDivergence = 1e10;  // as in solvers/monitor.hpp
    limits->target = rtol < 0.0 ? -1.0 : rtol * rtol * bb[0];
    limits->bound = kDivergence * kDivergence * bb[0];
    limits->end = (epoch != nullptr ? *epoch : 0) + epochs_left;
    return {};
  }
};

// The beginning of a step: what one thread judges and tells.
template <class F>
struct JudgeOnly {
  F f;
  CPUFREE_KERNEL_FN Nothing begin(bool first) const {
    static_cast<void>(f.begin(first));
    return {};
  }
  CPUFREE_KERNEL_FN void operator()(std::int32_t, Nothing, double*) const {}
};

// The part of a step that is communication: it packs, and computes nothing.
template <class F>
struct PackOnly {
  F f;
  CPUFREE_KERNEL_FN auto begin(bool first) const { return f.begin(first); }
  template <class Here>
  CPUFREE_KERNEL_FN void operator()(std::int32_t i, const Here&, double*) const {
    const std::int32_t row = f.out.interior + i;
    f.out.put(row, f.sent()[row]);
  }
};

// Waits for the ghosts of a vector, which come as packets.
template <class T>
struct AwaitGhosts {
  const Packet* halo;  // 2 for each ghost: parities
  const std::uint64_t* epoch;
  T* ghosts;
  CPUFREE_KERNEL_FN bool poll(std::int32_t i) const {
    const std::int64_t place = 2 * static_cast<std::int64_t>(i) + (*epoch & 1U);
    return reached(load_packet(halo + place).tag, *epoch);
  }
  CPUFREE_KERNEL_FN void take(std::int32_t i) const {
    ghosts[i] =
        static_cast<T>(load_packet(halo + 2 * static_cast<std::int64_t>(i) + (*epoch & 1U)).value);
  }
  CPUFREE_KERNEL_FN static int outputs() { return 0; }
  CPUFREE_KERNEL_FN void finish(int) const {}
};

// Waits for the sums of all PEs, and adds them in the order of the PEs. Ends the epoch.
struct AwaitSums {
  const Packet* slots;
  std::uint64_t* epoch;
  double* found;  // pes * count
  double* out;
  std::int32_t pes;
  std::int32_t count;

  CPUFREE_KERNEL_FN Packet look(std::int32_t i) const {
    return load_packet(slots + SumPackets::place(*epoch, pes, i / count, i % count));
  }
  CPUFREE_KERNEL_FN bool poll(std::int32_t i) const { return reached(look(i).tag, *epoch); }
  CPUFREE_KERNEL_FN void take(std::int32_t i) const { found[i] = look(i).value; }
  CPUFREE_KERNEL_FN int outputs() const { return count; }
  CPUFREE_KERNEL_FN void finish(int k) const {
    double total = 0.0;
    for (std::int32_t pe = 0; pe < pes; ++pe) total += found[pe * count + k];
    out[k] = total;
    if (k == 0) *epoch += 1;
  }
};

}  // namespace cpufree::baselines
