// Which version of the CPU engine's kernels is chosen.
#include <string>

#include "cpufree/plugins/cpu/level_choice.hpp"
#include "harness.hpp"

using namespace cpufree;

namespace {

template <class E>
std::string refusal(const std::string& asked, std::size_t runnable) {
  try {
    choose_cpu_level(asked, runnable);
  } catch (const E& error) {
    return error.what();
  }
  return "none";
}

const std::string kLow = kCpuLevels.front(), kHigh = kCpuLevels.back();

}  // namespace

TEST(best_level_is_taken_unless_another_is_asked_for) {
  for (std::size_t runnable = 1; runnable <= kCpuLevels.size(); ++runnable) {
    CHECK(choose_cpu_level("", runnable) == runnable - 1);
    CHECK(choose_cpu_level("auto", runnable) == runnable - 1);
    CHECK(choose_cpu_level(kLow, runnable) == 0);
  }
}

TEST(level_that_gains_nothing_is_taken_where_it_is_asked_for) {
  CHECK(choose_cpu_level("", 2, 1) == 0);
  CHECK(choose_cpu_level("auto", 1, 2) == 0);
  CHECK(choose_cpu_level(kHigh, 2, 1) == 1);
}

TEST(level_that_the_processor_lacks_is_refused) {
  CHECK(choose_cpu_level(kHigh, 2) == 1);
  CHECK(refusal<Unsupported>(kHigh, 1) ==
        "CPUFREE_CPU_LEVEL is " + kHigh + ", but this processor can run " + kLow + " at most");
  CHECK(refusal<Unsupported>("auto", 0) ==
        "cpufree needs a processor of level " + kLow + " (SSE 4.2)");
}

TEST(build_with_one_version_refuses_a_level_by_name) {
  for (const char* const unset : {"", "auto", "native"}) refuse_cpu_level(unset, "native");
  const auto refused = [](const std::string& asked) -> std::string {
    try {
      refuse_cpu_level(asked, "native");
    } catch (const Unsupported& error) {
      return error.what();
    } catch (const InvalidInput&) {
      return "no such level";
    }
    return "taken";
  };
  CHECK(refused(kHigh) == "CPUFREE_CPU_LEVEL is " + kHigh +
                              ", but this build has its CPU kernels in one version "
                              "(native): unset the variable, or build with CPUFREE_NATIVE=OFF");
  CHECK(refused("avx2") == "no such level");
}

TEST(level_that_does_not_exist_is_refused) {
  CHECK(refusal<InvalidInput>("avx2", 2) ==
        "CPUFREE_CPU_LEVEL is 'avx2'; it takes auto, " + kLow + ", " + kHigh);
}

TEST(processor_that_lacks_what_kernels_were_built_for_is_told_by_name) {
  const std::string info =
      "processor\t: 0\nvendor_id\t: X\nflags\t\t: sse4_2 avx2 fma\nbogomips: 1\n";
  CHECK(features_in(info) == " sse4_2 avx2 fma");
  CHECK(missing_features("avx2 avx512f fma avx512bw", features_in(info)) == "avx512f avx512bw");
  CHECK(missing_features("avx2 fma", features_in(info)).empty());
  // "avx" is no prefix that would do.
  CHECK(missing_features("avx", features_in(info)) == "avx");
  const std::string arm = "processor\t: 0\nFeatures\t: fp asimd atomics\nCPU part: 0xd0c\n";
  CHECK(missing_features("atomics sve sve2", features_in(arm)) == "sve sve2");
}

TEST(processor_whose_features_are_not_known_is_taken) {
  CHECK(missing_features("avx2", features_in("Processor: ARM\n")).empty());
}
