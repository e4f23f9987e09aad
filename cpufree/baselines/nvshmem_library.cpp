#include "cpufree/baselines/nvshmem_library.hpp"

#include <type_traits>

#if __has_include(<nvshmem_host.h>)
#include <nvshmem_host.h>
// The numbers and types of nvshmem_library.hpp.
namespace cpufree::baselines {
static_assert(int{NVSHMEM_TEAM_WORLD} == kShmemWorld && int{NVSHMEM_SIGNAL_SET} == kShmemSet);
static_assert(int{NVSHMEM_CMP_GE} == kShmemGe);
static_assert(std::is_same_v<decltype(nvshmemx_putmem_signal_on_stream), ShmemLibrary::Put>);
static_assert(std::is_same_v<decltype(nvshmemx_getmem_on_stream), ShmemLibrary::Get>);
static_assert(std::is_same_v<decltype(nvshmemx_signal_op_on_stream), ShmemLibrary::Signal>);
static_assert(std::is_same_v<decltype(nvshmemx_double_sum_reduce_on_stream), ShmemLibrary::Reduce>);
}  // namespace cpufree::baselines
#endif

namespace cpufree::baselines {

ShmemLibrary load_shmem(const std::string& path) {
  const SharedLibrary library = nvshmem::open_library(path);
  ShmemLibrary all;
  static_cast<remote::Library&>(all) = nvshmem::functions_of(library, path);
  library.find("nvshmemx_putmem_signal_on_stream", all.put_signal);
  library.find("nvshmemx_putmem_signal_nbi_on_stream", all.put_signal_nbi);
  library.find("nvshmemx_getmem_on_stream", all.get);
  library.find("nvshmemx_signal_op_on_stream", all.signal);
  library.find("nvshmemx_signal_wait_until_on_stream", all.wait);
  library.find("nvshmemx_double_sum_reduce_on_stream", all.sum);
  library.find("nvshmemx_double_max_reduce_on_stream", all.max);
  library.find("nvshmemx_barrier_all_on_stream", all.barrier);
  return all;
}

}  // namespace cpufree::baselines
