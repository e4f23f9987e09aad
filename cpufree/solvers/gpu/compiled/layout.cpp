// The kernels that lay a matrix out, compiled on this machine.
#include "cpufree/solvers/gpu/kernels/layout.hpp"

#include <string_view>

#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/launch/kernel_text.hpp"
#include "cpufree/solvers/gpu/compiled/kernel_source.hpp"

namespace cpufree {

namespace {

#define CPUFREE_NAME(K) #K,
constexpr std::string_view kOfRows[] = {CPUFREE_LAYOUT_ROW_KERNELS(CPUFREE_NAME)};

// "layout::CheckRows<float>" is called CheckRows in the text for float.
void launch(std::string_view name, const void* kernel, std::int64_t items, gpuStream_t stream) {
  if (items <= 0) return;
  const std::size_t begin = name.rfind(':') + 1, end = name.find('<');
  const std::string type(name.substr(end + 1, name.size() - end - 2));
  const std::string plain(name.substr(begin, end - begin));
  int device = 0;
  gpu::check_call(gpuGetDevice(&device), "GetDevice");
  const int devices[] = {device};
  const auto codes = compiled_code(layout_sources(type), devices);
  const bool of_rows = std::ranges::count(kOfRows, plain) > 0;
  const void* const found = gpu::find_kernel(codes[of_rows ? 0 : 1], "compiled kernels", plain);
  void* arguments[] = {const_cast<void*>(kernel)};
  gpu::check(gpuLaunchKernel(found, layout_blocks(items), layout::kThreads, arguments, stream),
             ("launch of " + plain).c_str());
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

}  // namespace cpufree
