// The solver kernels on the GPUs that are there: run_kernels [GPUS] [ROWS_PER_SIDE]. Compares with
// the serial reference, and times. Ends by itself: all waits are bounded.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cuda_p2p/bootstrap.cuh"
#include "cpufree/engines/cuda_p2p/launch.cuh"
#include "cpufree/problem/block_plan.hpp"
#include "cpufree/problem/partition.hpp"
#include "cpufree/solvers/csr_rows.hpp"
#include "cpufree/solvers/kernel.hpp"

namespace {

using namespace cpufree;
using cuda_p2p::DeviceArray;
using cuda_p2p::MappedArray;
using GpuPort = cuda_p2p::Port;
using Format = CsrRows<double>;
constexpr int kThreads = 512;

template <template <class, class> class Algorithm, class M>
__global__ void __launch_bounds__(kThreads)
    solve(const __grid_constant__ cuda_p2p::Shared shared, const SolveArgs<Format>* args) {
  __shared__ double scratch[GpuPort::kScratchDoubles];
  GpuPort port(shared, scratch);
  solve_kernel<Algorithm, M>(port, *args);
}

struct Grid {
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int32_t> col;
  std::vector<double> val;
  std::int32_t n() const { return static_cast<std::int32_t>(row_ptr.size()) - 1; }
};

Grid laplacian(std::int32_t m) {
  Grid a;
  for (std::int32_t j = 0; j < m; ++j)
    for (std::int32_t i = 0; i < m; ++i) {
      const auto add = [&](bool there, std::int32_t c, double v) {
        if (there) a.col.push_back(c), a.val.push_back(v);
      };
      const std::int32_t r = j * m + i;
      add(j > 0, r - m, -1.0);
      add(i > 0, r - 1, -1.0);
      add(true, r, 4.0);
      add(i + 1 < m, r + 1, -1.0);
      add(j + 1 < m, r + m, -1.0);
      a.row_ptr.push_back(static_cast<std::int64_t>(a.col.size()));
    }
  return a;
}

// One GPU's memory and arguments.
struct Pe {
  LocalSystem<double> local;
  DeviceArray<std::byte> heap;
  std::vector<DeviceArray<double>> vectors;
  DeviceArray<std::uint32_t> row_ptr;
  DeviceArray<std::int32_t> col, global_row;
  DeviceArray<double> val;
  DeviceArray<std::int64_t> send_ptr;
  DeviceArray<Destination> destinations;
  std::vector<DeviceArray<std::int32_t>> partners;
  DeviceArray<BlockShare<Format>> shares;
  DeviceArray<SolveArgs<Format>> args;
};

class GpuSystem {
 public:
  GpuSystem(const Grid& a, const std::vector<double>& b, int gpus)
      : b_(b), outcome_(1), history_(1 << 16), flags_(4), progress_(2) {
    for (int g = 0; g < gpus; ++g) devices_.push_back(g);
    cuda_p2p::connect(devices_);
    const void* kernel = reinterpret_cast<const void*>(solve<PipelinedCg, Chebyshev<double>>);
    blocks_ = cuda_p2p::resident_blocks(kernel, kThreads, 0) >= 132 ? 132 : 1;
    const CsrView<double> view{a.n(), a.row_ptr, a.col, a.val};
    auto plan = make_halo_plan(view, contiguous_partition(view.row_ptr, gpus), {}, gpus);
    const auto blocks = make_block_plans(plan, blocks_);
    std::size_t longest = 0;
    for (const auto& local : plan.local)
      longest = std::max(longest, static_cast<std::size_t>(local.rows() + local.ghosts));
    leave_ = layout_.reserve<Flag>(1);
    board_ = layout_.reserve<Flag>(static_cast<std::size_t>(gpus * blocks_));
    slots_ = layout_.reserve<Packet>(static_cast<std::size_t>(reduce_slot_count(gpus, blocks_)));
    channels_ = layout_.bytes();
    for (auto& v : ghosted_) v = layout_.reserve<double>(longest);
    records_ = std::make_unique<MappedArray<WaitRecord>>(static_cast<std::size_t>(gpus * blocks_));
    for (int g = 0; g < gpus; ++g) {
      pes_.emplace_back();
      fill(g, std::move(plan.local[static_cast<std::size_t>(g)]),
           blocks[static_cast<std::size_t>(g)]);
    }
    launch_ = std::make_unique<cuda_p2p::Launch>(devices_);
  }

  int blocks() const { return blocks_; }

  // Returns seconds.
  template <template <class, class> class Algorithm, class M>
  double run(SolveParams params) {
    const void* kernel = reinterpret_cast<const void*>(solve<Algorithm, M>);
    params.history_capacity = static_cast<std::int64_t>(history_.size());
    params.roundoff = 1.1e-16;
    params.lambda_bound = 2.0;
    outcome_[0] = {};
    std::vector<cuda_p2p::Shared> shared;
    std::vector<const SolveArgs<Format>*> args;
    for (std::size_t g = 0; g < pes_.size(); ++g) {
      const cuda_p2p::OnDevice here(devices_[g]);
      cuda_p2p::check(cudaMemset(pes_[g].heap.data(), 0, channels_), "cudaMemset");
      host_args_[g].params = params;
      cuda_p2p::check(cudaMemcpy(pes_[g].args.data(), &host_args_[g], sizeof(host_args_[g]),
                                 cudaMemcpyHostToDevice),
                      "cudaMemcpy");
      cuda_p2p::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      args.push_back(pes_[g].args.data());
      cuda_p2p::Shared s;
      s.pe = static_cast<int>(g);
      s.pes = static_cast<int>(pes_.size());
      for (std::size_t k = 0; k < pes_.size(); ++k) s.heaps[k] = pes_[k].heap.data();
      s.leave = leave_.at(pes_[g].heap.data());
      s.host_leave = &flags_[0];
      s.notes = &flags_[1];
      s.iteration = iteration_.data();
      s.residual = &progress_[0];
      s.records = records_->data() + static_cast<std::size_t>(blocks_) * g;
      s.wait_limit_ns = 3'000'000'000;
      shared.push_back(s);
    }
    launch_->load(kernel);
    const auto start = std::chrono::steady_clock::now();
    launch_->start(kernel, blocks_, kThreads, shared, args);
    while (!launch_->ended()) std::this_thread::yield();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    for (std::size_t k = 0; k < records_->size(); ++k)
      if (WaitRecord& r = (*records_)[k]; r.state != BlockState::absent) {
        std::printf("  slot %zu gave up waiting for PE %d block %d (%s, want %llu, seen %llu)\n", k,
                    r.from_pe, r.from_block, channel_name(r.channel),
                    static_cast<unsigned long long>(r.want),
                    static_cast<unsigned long long>(r.seen));
        r = {};
      }
    return elapsed.count();
  }

  const Outcome& outcome() const { return outcome_[0]; }
  std::vector<double> x() const {
    std::vector<double> all(b_.size());
    for (const Pe& pe : pes_) {
      const auto mine = pe.vectors[1].download();
      for (std::size_t i = 0; i < pe.local.global_row.size(); ++i)
        all[static_cast<std::size_t>(pe.local.global_row[i])] = mine[i];
    }
    return all;
  }

 private:
  void fill(int g, LocalSystem<double> local, const std::vector<BlockPlan>& plans) {
    Pe& pe = pes_.back();
    pe.local = std::move(local);
    const LocalSystem<double>& l = pe.local;
    const auto rows = static_cast<std::size_t>(l.rows());
    pe.heap = DeviceArray<std::byte>(g, layout_.bytes());
    std::vector<double> b(rows), inverse(rows, 0.25);
    for (std::size_t i = 0; i < rows; ++i) b[i] = b_[static_cast<std::size_t>(l.global_row[i])];
    for (int k = 0; k < 12; ++k)
      pe.vectors.push_back(k == 0   ? DeviceArray<double>(g, b)
                           : k == 4 ? DeviceArray<double>(g, inverse)
                                    : DeviceArray<double>(g, rows));
    pe.row_ptr = DeviceArray<std::uint32_t>(
        g, std::vector<std::uint32_t>(l.row_ptr.begin(), l.row_ptr.end()));
    pe.col = DeviceArray<std::int32_t>(g, l.col);
    pe.val = DeviceArray<double>(g, l.val);
    pe.global_row = DeviceArray<std::int32_t>(g, l.global_row);
    pe.send_ptr = DeviceArray<std::int64_t>(g, l.send_ptr);
    pe.destinations = DeviceArray<Destination>(g, l.destinations);
    const Format format{pe.row_ptr.data(), pe.col.data(), pe.val.data()};
    const auto rows_of = [&](RowRange r) {
      return Format::Rows{r.begin, r.end, l.row_ptr[static_cast<std::size_t>(r.begin)]};
    };
    std::vector<BlockShare<Format>> shares;
    for (const BlockPlan& plan : plans) {
      pe.partners.emplace_back(g, plan.notify);
      const std::int32_t* notify = pe.partners.back().data();
      pe.partners.emplace_back(g, plan.await);
      shares.push_back({format, rows_of(plan.interior), rows_of(plan.boundary),
                        ArrivalBoard{board_.at(pe.heap.data()), notify, pe.partners.back().data(),
                                     static_cast<std::int32_t>(plan.notify.size()),
                                     static_cast<std::int32_t>(plan.await.size())}});
    }
    pe.shares = DeviceArray<BlockShare<Format>>(g, shares);
    const auto v = [&](std::size_t k) { return pe.vectors[k].data(); };
    SolveArgs<Format> a;
    a.vectors = {v(0),
                 v(1),
                 v(2),
                 v(3),
                 ghosted_[0].at(pe.heap.data()),
                 {ghosted_[1].at(pe.heap.data()), ghosted_[2].at(pe.heap.data())},
                 v(4),
                 v(5),
                 v(6),
                 v(7),
                 v(8),
                 v(9),
                 v(10),
                 v(11)};
    a.shares = pe.shares.data();
    a.interior = l.interior;
    a.send_ptr = pe.send_ptr.data();
    a.destinations = pe.destinations.data();
    a.global_row = pe.global_row.data();
    a.slots = slots_.at(pe.heap.data());
    a.outcome = outcome_.data();
    a.history = history_.data();
    pe.args = DeviceArray<SolveArgs<Format>>(g, std::size_t{1});
    host_args_.push_back(a);
  }

  std::vector<int> devices_;
  std::vector<double> b_;
  int blocks_ = 1;
  SymmetricLayout layout_;
  Symmetric<Flag> leave_, board_;
  Symmetric<Packet> slots_;
  Symmetric<double> ghosted_[3];
  std::size_t channels_ = 0;
  std::vector<Pe> pes_;
  std::vector<SolveArgs<Format>> host_args_;
  MappedArray<Outcome> outcome_;
  MappedArray<double> history_;
  MappedArray<unsigned> flags_;
  MappedArray<double> progress_;
  MappedArray<std::int64_t> iteration_{1};
  std::unique_ptr<MappedArray<WaitRecord>> records_;
  std::unique_ptr<cuda_p2p::Launch> launch_;
};

// || b - A x || / || b ||, on the host.
double relative_residual(const Grid& a, const std::vector<double>& b,
                         const std::vector<double>& x) {
  double rr = 0.0, bb = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    double r = b[i];
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]);
         k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      r -= a.val[k] * x[static_cast<std::size_t>(a.col[k])];
    rr += r * r;
    bb += b[i] * b[i];
  }
  return std::sqrt(rr / bb);
}

int failures = 0;

template <template <class, class> class Algorithm, class M>
void report(const char* name, GpuSystem& system, const Grid& a, const std::vector<double>& b,
            int gpus) {
  SolveParams params;
  params.rtol = 1e-9;
  params.maxiter = 20000;
  system.run<Algorithm, M>(params);
  const double residual = relative_residual(a, b, system.x());
  const Outcome solved = system.outcome();
  const bool right = solved.reason == Reason::converged_rtol && residual <= 1.01e-9;
  failures += right ? 0 : 1;
  const std::vector<double> first = system.x();
  system.run<Algorithm, M>(params);
  const bool same = std::memcmp(first.data(), system.x().data(), first.size() * 8) == 0;
  failures += same ? 0 : 1;
  params.rtol = 0.0;
  params.maxiter = 1000;
  std::vector<double> times;
  for (int k = 0; k < 7; ++k) times.push_back(system.run<Algorithm, M>(params));
  std::sort(times.begin(), times.end());
  std::printf(
      "%d GPUs, n %8d, %-16s %s, %lld iterations, true residual %.2e, %s, %.2f us/iteration\n",
      gpus, a.n(), name, right ? "right" : "WRONG", static_cast<long long>(solved.iterations),
      residual, same ? "bitwise again" : "NOT REPRODUCIBLE",
      1e6 * times[3] / static_cast<double>(system.outcome().iterations));
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int found = 0;
  if (cudaGetDeviceCount(&found) != cudaSuccess || found == 0) {
    std::printf("skipped: no GPU here\n");
    return 0;
  }
  const int most = argc > 1 ? std::min(std::atoi(argv[1]), found) : found;
  const int m = argc > 2 ? std::atoi(argv[2]) : 512;
  const Grid a = laplacian(m);
  std::vector<double> b(static_cast<std::size_t>(a.n()));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = 0.3 + std::sin(0.37 * static_cast<double>(i));
  try {
    for (int gpus = 1; gpus <= most; gpus *= 2) {
      GpuSystem system(a, b, gpus);
      std::printf("%d GPUs, %d blocks of %d threads\n", gpus, system.blocks(), kThreads);
      report<ConjugateGradient, Jacobi<double>>("cg jacobi", system, a, b, gpus);
      report<PredictRecompute, Jacobi<double>>("prcg jacobi", system, a, b, gpus);
      report<PipelinedCg, Jacobi<double>>("pipecg jacobi", system, a, b, gpus);
      report<PredictRecompute, Chebyshev<double>>("prcg chebyshev", system, a, b, gpus);
      report<PipelinedCg, Chebyshev<double>>("pipecg chebyshev", system, a, b, gpus);
    }
  } catch (const Error& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
