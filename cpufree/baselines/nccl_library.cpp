#include "cpufree/baselines/nccl_library.hpp"

#include <gpu_vendor.hpp>

#include "cpufree/base/error.hpp"
#include "cpufree/base/shared_library.hpp"

// The vendor's header, where it is there: RCCL has the names of NCCL.
#if defined(CPUFREE_HIP) && __has_include(<rccl/rccl.h>)
#include <rccl/rccl.h>
#define CPUFREE_HAS_COLLECTIVES
#elif !defined(CPUFREE_HIP) && __has_include(<nccl.h>)
#include <nccl.h>
#define CPUFREE_HAS_COLLECTIVES
#endif
#if defined(CPUFREE_HAS_COLLECTIVES)
// The numbers of nccl_library.hpp.
static_assert(int{ncclFloat32} == cpufree::baselines::kCollFloat);
static_assert(int{ncclFloat64} == cpufree::baselines::kCollDouble);
static_assert(ncclSum == cpufree::baselines::kCollSum && ncclSuccess == 0);
static_assert(sizeof(ncclUniqueId) == sizeof(cpufree::baselines::CollId));
#endif

namespace cpufree::baselines {

CollLibrary load_collectives(const std::string& path) {
  const char* const name = path.empty() ? gpuCollectivesFile : path.c_str();
  const std::string advice = std::string(gpuCollectivesAdvice) +
                             ", or give the option nccl_library, the path of " + gpuCollectivesFile;
  const SharedLibrary library(name, gpuCollectives, "version 2.10 or newer", advice.c_str());
  CollLibrary all;
  all.path = name;
  library.find("ncclCommInitAll", all.init_all);
  library.find("ncclGetUniqueId", all.make_id);
  library.find("ncclCommInitRank", all.init_rank);
  library.find("ncclCommDestroy", all.destroy);
  library.find("ncclCommAbort", all.abort);
  library.find("ncclGroupStart", all.group_start);
  library.find("ncclGroupEnd", all.group_end);
  library.find("ncclAllReduce", all.all_reduce);
  library.find("ncclSend", all.send);
  library.find("ncclRecv", all.receive);
  library.find("ncclGetErrorString", all.error_text);
  std::function<int(int*)> version;
  library.find("ncclGetVersion", version);
  version(&all.version);
  return all;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace cpufree::baselines
