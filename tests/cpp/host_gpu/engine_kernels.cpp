// The solver kernels of the engine for GPUs on the host, and what GPUs do with vectors before and
// after a solve.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>

#include "cpufree/base/error.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/formats/warp_columns.hpp"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/probes/gpu/litmus_args.hpp"
#include "cpufree/solvers/block_cg.hpp"
#include "cpufree/solvers/cg.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/gpu/kernels/many_kernel.hpp"
#include "cpufree/solvers/gpu/kernels/remote_kernel.hpp"
#include "cpufree/solvers/gpu/kernels/vectors.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/solvers/many.hpp"
#include "cpufree/solvers/pipelined_cg.hpp"
#include "cpufree/solvers/prcg.hpp"
#include "cpufree/solvers/preconditioners.hpp"
#include "host_ports.hpp"
#include "warp_streams.hpp"

namespace host_engine {

using namespace cpufree;
using warp_rig::LanesPort;

// Between nodes: shared memory in place of a network. P numbers the PEs of a node by place.
template <class P>
class BetweenNodes : public P {
 public:
  BetweenNodes(const P& port, const remote::Seat& seat) : P(port), seat_(seat) {}
  int pe() const { return seat_.pe; }
  int pes() const { return seat_.pes; }
  const Remote& remote() const { return seat_.remote; }
  template <class T>
  void put(T* object, int pe, T value) {
    P::put(object, place(pe), value);
  }
  void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    P::put_packet(packet, place(pe), value, tag);
  }
  void put_flag(Flag* flag, int pe, Epoch epoch) { P::put_flag(flag, place(pe), epoch); }
  template <class T>
  void put_signal(T* to, int pe, const T* from, std::int64_t count, Flag* flag, Epoch epoch) {
    this->sync_block();
    if (this->lane() != 0) return;
    std::copy_n(from, count, static_cast<T*>(library.address(to, pe)));
    auto& there = static_cast<Flag*>(library.address(flag, pe))->value;
    std::atomic_ref<Epoch>(there).store(epoch, std::memory_order_release);
  }
  void see_signals() { this->sync_block(); }

 private:
  int place(int pe) const {
    if (!reaches(*this, pe)) throw std::logic_error("a store goes to another node");
    return seat_.remote.nodes.place[pe];
  }
  const remote::Seat& seat_;
};

template <template <class, class> class Algorithm, class M, class T>
Kernel remote_kernel() {
  using Args = RemoteSolveArgs<WarpSlices<T>>;
  using P = Crossing<LanesPort>;
  static std::atomic<unsigned> seed{1};
  return {sizeof(Args), [](const gpu_p2p::Shared& shared, const void* args, int blocks, int threads,
                           std::size_t fast_bytes) {
            const Args& mine = *static_cast<const Args*>(args);
            warp_rig::run<P>(shared.pes, blocks, threads, fast_bytes, shared.heaps, seed++,
                             [&](P& port, int place) {
                               if (place != shared.pe) return;
                               BetweenNodes<P> far(port, mine.seat);
                               solve_kernel<Algorithm, M>(far, mine.solve);
                             });
          }};
}

Kernel litmus() {
  return {sizeof(RemoteLitmusArgs), [](const gpu_p2p::Shared& shared, const void* args, int blocks,
                                       int threads, std::size_t fast_bytes) {
            const auto& mine = *static_cast<const RemoteLitmusArgs*>(args);
            using P = Crossing<LanesPort>;
            warp_rig::run<P>(shared.pes, blocks, threads, fast_bytes, shared.heaps, 1,
                             [&](P& port, int place) {
                               if (place != shared.pe) return;
                               BetweenNodes<P> far(port, mine.seat);
                               litmus_kernel(far, mine.litmus);
                             });
          }};
}

// Those that tests use.
const Kernel* kernel_named(const char* name) {
  static const std::map<std::string, Kernel> all = {
      {"cpufree_litmus", litmus()},
      {"cpufree_cg_none_double", remote_kernel<ConjugateGradient, Identity<double>, double>()},
      {"cpufree_prcg_jacobi_double", remote_kernel<PredictRecompute, Jacobi<double>, double>()},
      {"cpufree_prcg_jacobi_float", remote_kernel<PredictRecompute, Jacobi<float>, float>()},
      {"cpufree_prcg_factored_double", remote_kernel<PredictRecompute, Factored<double>, double>()},
      {"cpufree_minres_jacobi_double", remote_kernel<MinimalResidual, Jacobi<double>, double>()},
      {"cpufree_bicgstab_jacobi_double", remote_kernel<StabilizedBiCg, Jacobi<double>, double>()},
      {"cpufree_pipecg_chebyshev_double", remote_kernel<PipelinedCg, Chebyshev<double>, double>()}};
  std::string plain = name;
  if (plain.ends_with("_streaming")) plain.resize(plain.size() - std::strlen("_streaming"));
  const auto found = all.find(plain);
  return found == all.end() ? nullptr : &found->second;
}

template <template <class, class> class Algorithm, class M, class T, class P, class Format,
          int K = 1>
const void* kernel() {
  using Args = SolveArgs<WarpSlices<T>, K>;
  return kernel_of<P, Args>(
      [](P& port, const Args& args) { solve_kernel<Algorithm, M, Format>(port, args); });
}

template <class M, class... Of>
inline constexpr bool kAmong = (std::is_same_v<M, Of> || ...);

// Methods and preconditioners that tests use; those that one adds are to be named here.
template <template <class, class> class Algorithm, class M>
inline constexpr bool kUsed = false;
template <class M>
inline constexpr bool kUsed<ConjugateGradient, M> =
    kAmong<M, Identity<double>, Jacobi<double>, Jacobi<float>, Factored<double>>;
template <class M>
inline constexpr bool kUsed<PredictRecompute, M> =
    kAmong<M, Jacobi<double>, Jacobi<float>, Chebyshev<double>, Chebyshev<float>, Factored<double>>;
template <class M>
inline constexpr bool kUsed<PipelinedCg, M> =
    kAmong<M, Jacobi<double>, Chebyshev<double>, Factored<double>>;
template <class M>
inline constexpr bool kUsed<MinimalResidual, M> = kAmong<M, Jacobi<double>, Factored<double>>;
template <class M>
inline constexpr bool kUsed<StabilizedBiCg, M> = kAmong<M, Jacobi<double>>;

template <template <class, class> class Algorithm, class M>
inline constexpr bool kDefault = false;
template <class T>
inline constexpr bool kDefault<PredictRecompute, Jacobi<T>> = true;

}  // namespace host_engine

namespace cpufree {

// What is different for slices without runs is tested by the default solve; the kernels of others
// are those for slices of any kind.
template <template <class, class> class Algorithm, class M, class T, int K>
GpuKernels gpu_kernels() {
  using host_engine::Crossing;
  using warp_rig::LanesPort;
  using warp_rig::StreamingPort;
  if constexpr (K > 1) {
    return for_any_code(
        {host_engine::kernel<Algorithm, M, T, Crossing<LanesPort>, AnySlices, K>(), nullptr});
  } else if constexpr (std::is_same_v<M, Multigrid<T>>) {
    const void* any = host_engine::kernel<Algorithm, M, T, Crossing<LanesPort>, AnySlices>();
    return for_any_code({any, any});
  } else if constexpr (host_engine::kUsed<Algorithm, M>) {
    const GpuKernelPair any = {
        host_engine::kernel<Algorithm, M, T, Crossing<LanesPort>, AnySlices>(),
        host_engine::kernel<Algorithm, M, T, Crossing<StreamingPort>, AnySlices>()};
    const void* on_chip = host_engine::kernel<Algorithm, M, T, Crossing<LanesPort>, SlicesOnChip>();
    GpuKernelPair singles = any;
    if constexpr (host_engine::kDefault<Algorithm, M>)
      singles = {
          host_engine::kernel<Algorithm, M, T, Crossing<LanesPort>, SlicesWithoutRuns>(),
          host_engine::kernel<Algorithm, M, T, Crossing<StreamingPort>, SlicesWithoutRuns>()};
    return {singles, any, on_chip};
  } else {
    throw Unsupported("the host has no such kernel: name it in engine_kernels.cpp");
  }
}

template <Study S, template <class, class> class Algorithm>
GpuKernels gpu_study_kernels() {
  throw Unsupported("the host has no studies");
}

#define CPUFREE_HOST_KERNELS(A, T)                          \
  template GpuKernels gpu_kernels<A, Identity<T>, T, 1>();  \
  template GpuKernels gpu_kernels<A, Jacobi<T>, T, 1>();    \
  template GpuKernels gpu_kernels<A, Chebyshev<T>, T, 1>(); \
  template GpuKernels gpu_kernels<A, Factored<T>, T, 1>();
#define CPUFREE_HOST_METHOD(A)                                \
  CPUFREE_HOST_KERNELS(A, float)                              \
  CPUFREE_HOST_KERNELS(A, double)                             \
  template GpuKernels gpu_study_kernels<Study::split, A>();   \
  template GpuKernels gpu_study_kernels<Study::no_comm, A>(); \
  template GpuKernels gpu_study_kernels<Study::no_compute, A>();
CPUFREE_HOST_METHOD(ConjugateGradient)
template GpuKernels gpu_kernels<ConjugateGradient, Multigrid<float>, float, 1>();
template GpuKernels gpu_kernels<ConjugateGradient, Multigrid<double>, double, 1>();
CPUFREE_HOST_METHOD(PredictRecompute)
CPUFREE_HOST_METHOD(PipelinedCg)
CPUFREE_HOST_METHOD(MinimalResidual)
CPUFREE_HOST_METHOD(StabilizedBiCg)

#define CPUFREE_HOST_COLUMNS(T, K)                                              \
  template GpuKernels gpu_kernels<ConjugateGradient, Identity<T>, T, K>();      \
  template GpuKernels gpu_kernels<ConjugateGradient, Jacobi<T>, T, K>();        \
  template GpuKernels gpu_kernels<BlockConjugateGradient, Identity<T>, T, K>(); \
  template GpuKernels gpu_kernels<BlockConjugateGradient, Jacobi<T>, T, K>();
CPUFREE_HOST_COLUMNS(float, 2)
CPUFREE_HOST_COLUMNS(float, 4)
CPUFREE_HOST_COLUMNS(float, 8)
CPUFREE_HOST_COLUMNS(double, 2)
CPUFREE_HOST_COLUMNS(double, 4)
CPUFREE_HOST_COLUMNS(double, 8)

// Of values in single precision, those that tests use.
template <template <class, class> class Algorithm, class M>
GpuKernels of_single_values() {
  using host_engine::Crossing;
  using Format = SlicesOf<kAllKinds | kSingleValues>;
  return for_any_code(
      {host_engine::kernel<Algorithm, M, double, Crossing<warp_rig::LanesPort>, Format>(),
       host_engine::kernel<Algorithm, M, double, Crossing<warp_rig::StreamingPort>, Format>()});
}
GpuKernels mixed_kernels(const SolveSpec& spec, int columns) {
  using Pc = Preconditioner;
  const auto is = [&](Method method, Pc pc) {
    return spec.method == method && spec.preconditioner == pc;
  };
  if (columns == 2 && is(Method::cg, Pc::jacobi)) {
    using P = host_engine::Crossing<warp_rig::LanesPort>;
    using Format = SlicesOf<kAllKinds | kSingleValues>;
    return for_any_code(
        {host_engine::kernel<ConjugateGradient, Jacobi<double>, double, P, Format, 2>(), nullptr});
  }
  require(columns == 1, "the host has no such kernel: name it in engine_kernels.cpp");
  if (is(Method::cg, Pc::jacobi)) return of_single_values<ConjugateGradient, Jacobi<double>>();
  if (is(Method::cg, Pc::amg)) return of_single_values<ConjugateGradient, Multigrid<double>>();
  if (is(Method::prcg, Pc::jacobi)) return of_single_values<PredictRecompute, Jacobi<double>>();
  if (is(Method::prcg, Pc::fsai)) return of_single_values<PredictRecompute, Factored<double>>();
  if (is(Method::pipecg, Pc::jacobi)) return of_single_values<PipelinedCg, Jacobi<double>>();
  throw Unsupported("the host has no such kernel: name it in engine_kernels.cpp");
}

// Many systems, each by a block; the method and preconditioner that tests use.
template <class T>
const void* many_kernel(const SolveSpec& spec, int) {
  using P = host_engine::Crossing<host_engine::LanesPort>;
  using Args = ManyArgs<CsrRows<T>>;
  require(spec.method == Method::prcg && spec.preconditioner == Preconditioner::jacobi,
          "the host has no such kernel: name it in engine_kernels.cpp");
  return host_engine::kernel_of<P, Args>(
      [](P& port, const Args& args) { solve_each<PredictRecompute, Jacobi<T>>(port, args); });
}
template const void* many_kernel<float>(const SolveSpec&, int);
template const void* many_kernel<double>(const SolveSpec&, int);

}  // namespace cpufree
