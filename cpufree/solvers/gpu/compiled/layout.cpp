// The kernels that lay a matrix out and make hierarchies, compiled on this machine.
#include "cpufree/solvers/gpu/kernels/layout.hpp"

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"

namespace cpufree {

namespace {

#define CPUFREE_NAME(K) #K,
constexpr std::string_view kOfRows[] = {CPUFREE_LAYOUT_ROW_KERNELS(CPUFREE_NAME)};
constexpr std::string_view kOfInverses[] = {CPUFREE_LAYOUT_INVERSE_KERNELS(CPUFREE_NAME)};

// "layout::CheckRows<float>" is called CheckRows in the text for float,
// "multigrid::setup::JoinRoots" JoinRoots.
const void* find(std::string_view name, int device) {
  const std::size_t begin = name.rfind(':') + 1, end = std::min(name.find('<'), name.size());
  const std::string plain(name.substr(begin, end - begin));
  const int devices[] = {device};
  const auto type = [&] { return std::string(name.substr(end + 1, name.size() - end - 2)); };
  const bool of_levels = name.starts_with("multigrid::");
  const bool of_inverse = std::ranges::count(kOfInverses, plain) > 0;
  const auto codes = compiled_code(of_levels    ? std::vector{hierarchy_source()}
                                   : of_inverse ? std::vector{inverse_source(type())}
                                                : layout_sources(type()),
                                   devices);
  const bool first = of_levels || of_inverse || std::ranges::count(kOfRows, plain) > 0;
  return gpu::find_kernel(codes[first ? 0 : 1], "compiled kernels", plain);
}

// The same, looked for once: a set-up launches hundreds of kernels. Code stays loaded.
const void* find_once(std::string_view name, int device) {
  static std::mutex mutex;
  static std::map<std::pair<std::string_view, int>, const void*> known;
  {
    const std::lock_guard lock(mutex);
    if (const auto there = known.find({name, device}); there != known.end()) return there->second;
  }
  const void* const found = find(name, device);  // may wait for a compiler
  const std::lock_guard lock(mutex);
  return known[{name, device}] = found;
}

// `name`: of the kernel's class, permanently.
void launch(std::string_view name, const void* kernel, std::int64_t items, gpuStream_t stream) {
  if (items <= 0) return;
  int device = 0;
  gpu::check_call(gpuGetDevice(&device), "GetDevice");
  void* arguments[] = {const_cast<void*>(kernel)};
  const gpuError_t status = gpuLaunchKernel(find_once(name, device), layout_blocks(items),
                                            layout::kThreads, arguments, stream);
  if (status != gpuSuccess) gpu::check(status, ("launch of " + std::string(name)).c_str());
}

}  // namespace

#define CPUFREE_LAYOUT_ONE(K)                                                   \
  template <>                                                                   \
  void launch_layout(const K& kernel, std::int64_t items, gpuStream_t stream) { \
    launch(#K, &kernel, items, stream);                                         \
  }
CPUFREE_ALL_LAYOUT_KERNELS

template <class T>
void prepare_layout(std::span<const int> devices) {
  compile_ahead(layout_sources(type_name<T>()), devices);
}
template void prepare_layout<float>(std::span<const int>);
template void prepare_layout<double>(std::span<const int>);

template <class T>
void prepare_inverse(std::span<const int> devices) {
  compile_ahead({inverse_source(type_name<T>())}, devices);
}
template void prepare_inverse<float>(std::span<const int>);
template void prepare_inverse<double>(std::span<const int>);

void prepare_hierarchy(std::span<const int> devices) {
  compile_ahead({hierarchy_source()}, devices);
}

}  // namespace cpufree
