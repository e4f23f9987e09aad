// What NVSHMEM may have of a GPU's memory, as its variable says.
#include <cstdlib>
#include <limits>

#include "cpufree/engines/remote/nvshmem/library.hpp"
#include "harness.hpp"

using namespace cpufree;

namespace {

constexpr const char* kName = "NVSHMEM_MAX_MEMORY_PER_GPU";

std::size_t most_with(const char* text) {
  CHECK_EQ(setenv(kName, text, 1), 0);
  return nvshmem::most_memory();
}

}  // namespace

TEST(memory_is_told_in_bytes_or_with_a_unit) {
  CHECK_EQ(most_with("100663296"), std::size_t{96} << 20);
  CHECK_EQ(most_with("96MB"), std::size_t{96} << 20);
  CHECK_EQ(most_with("2g"), std::size_t{2} << 30);
  CHECK_EQ(most_with("1.5K"), std::size_t{1536});
}

TEST(memory_that_is_not_told_has_no_bound) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  CHECK_EQ(most_with(""), all);
  CHECK_EQ(most_with("much"), all);
  CHECK_EQ(unsetenv(kName), 0);
  CHECK_EQ(nvshmem::most_memory(), all);
}
