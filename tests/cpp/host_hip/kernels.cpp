// The kernels of the stand-in for AMD's GPUs, found by the texts that the engine compiles: those of
// two methods with Jacobi, what they need besides, and a stencil.
#include "kernels.hpp"

#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/solvers/cg.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/gpu/kernels/vectors.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/solvers/prcg.hpp"
#include "cpufree/solvers/preconditioners.hpp"
#include "cpufree/stencils/time_tiles.hpp"
#include "host_ports.hpp"
#include "warp_streams.hpp"

// Of NVSHMEM's libraries, which these GPUs do not have.
const host_engine::Kernel* host_engine::kernel_named(const char*) { return nullptr; }

namespace host_hip {

namespace {

using namespace cpufree;
using host_engine::Crossing;

template <template <class, class> class Algorithm, class Format>
const void* solver() {
  using P = Crossing<warp_rig::LanesPort>;
  using Args = SolveArgs<WarpSlices<double>, 1>;
  return host_engine::kernel_of<P, Args>([](P& port, const Args& args) {
    solve_kernel<Algorithm, Jacobi<double>, Format>(port, args);
  });
}

const void* time_tiles() {
  using P = Crossing<warp_rig::Port>;
  return host_engine::kernel_of<P, JacobiArgs<double>>(
      [](P& port, const JacobiArgs<double>& args) { time_tile_kernel<2, 1, false>(port, args); });
}

template <class T>
T argument(void* at) {
  return *static_cast<T*>(at);
}
template <class T>
gpuError_t gather(void** a, gpuStream_t stream) {
  gather_vector(argument<const T*>(a[0]), argument<const std::int32_t*>(a[1]),
                argument<std::int64_t>(a[2]), argument<T*>(a[3]), argument<VectorProbe*>(a[4]),
                stream);
  return gpuSuccess;
}
template <class T>
gpuError_t scale(void** a, gpuStream_t stream) {
  scale_vector(argument<T*>(a[0]), argument<std::int64_t>(a[1]), argument<double>(a[2]), stream);
  return gpuSuccess;
}
template <class T>
gpuError_t scatter(void** a, gpuStream_t stream) {
  scatter_vector(argument<const T*>(a[0]), argument<const std::int32_t*>(a[1]),
                 argument<std::int64_t>(a[2]), argument<double>(a[3]), argument<T*>(a[4]),
                 argument<VectorProbe*>(a[5]), stream);
  return gpuSuccess;
}

struct Known {
  const char* text;  // a part of it
  const char* name;
  Function function;
};

}  // namespace

std::optional<Function> find_function(const std::string& text, const std::string& name) {
  static const Known all[] = {
      {"Port port(shared, reinterpret_cast<std::byte*>(fast));\n  "
       "solve_kernel<PredictRecompute, Jacobi<double>, SlicesOf<",
       "run_on_gpu",
       {solver<PredictRecompute, AnySlices>()}},
      {"solve_kernel<PredictRecompute, Jacobi<double>, SlicesOnChipOf<",
       "run_on_gpu",
       {solver<PredictRecompute, SlicesOnChip>()}},
      {"solve_kernel<ConjugateGradient, Jacobi<double>, Slices",
       "run_on_gpu",
       {solver<ConjugateGradient, AnySlices>()}},
      {"time_tile_kernel<2, 1, false>(p, args)", "run_on_gpu", {time_tiles()}},
      {"const double* from", "gather_entries", {nullptr, gather<double>}},
      {"const double* from", "scale_entries", {nullptr, scale<double>}},
      {"const double* from", "scatter_entries", {nullptr, scatter<double>}},
  };
  for (const Known& one : all)
    if (name == one.name && text.find(one.text) != std::string::npos) return one.function;
  return {};
}

}  // namespace host_hip
