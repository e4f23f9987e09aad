// A small test harness. Write
//     TEST(adds_numbers) { CHECK_EQ(1 + 1, 2); }
// in a file test_*.cpp, with no main: it is here. Options: --list, --filter SUBSTRING, --thorough.
// A failed check is printed and the test goes on; a test that runs no check at all fails.
// Checks may run on any thread.
#pragma once

#include <atomic>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string_view>
#include <vector>

namespace harness {

// Tests of many random schedules or cases take all of them with --thorough, and otherwise the part
// that there is time for after each change.
inline bool thorough = false;
inline int schedules(int few, int all) { return thorough ? all : few; }
inline int schedules(int all) { return schedules((all + 3) / 4, all); }
// ThreadSanitizer looks at orders, not at lengths: what repeats them may be shorter there, by much
// more than it is slower. So may it be under an emulator of another processor.
#if defined(__SANITIZE_THREAD__) || defined(CPUFREE_EMULATED)
inline constexpr int shorter(int, int sanitized) { return sanitized; }
#else
inline constexpr int shorter(int all, int) { return all; }
#endif
class Sample {
 public:
  explicit Sample(std::uint64_t one_in) : one_in_(one_in) {}
  // Whether the next case is one of those to run: the same ones each time.
  bool next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return thorough || (state_ >> 33U) % one_in_ == 0;
  }

 private:
  std::uint64_t one_in_;
  std::uint64_t state_ = 1;
};

struct Test {
  const char* name;
  void (*body)();
};
inline std::vector<Test> tests;
inline std::atomic<int> checks = 0;    // run by the current test
inline std::atomic<int> failures = 0;  // of the current test

struct Registration {
  Registration(const char* name, void (*body)()) { tests.push_back({name, body}); }
};

template <class T>
void print(const T& value) {
  if constexpr (requires { std::cerr << value; })
    std::cerr << "\n    value: " << value;
  else if constexpr (std::is_enum_v<T>)
    print(static_cast<long long>(value));
}

template <class... Values>
bool check(bool ok, const char* file, int line, const char* text, const Values&... values) {
  ++checks;
  if (ok) return true;
  ++failures;
  std::cerr << file << ":" << line << ": failed: " << text;
  (print(values), ...);
  std::cerr << std::endl;
  return false;
}

template <class A, class B>
bool check_eq(const A& a, const B& b, const char* file, int line, const char* text) {
  return check(a == b, file, line, text, a, b);
}

// A NaN is near nothing.
inline bool check_near(double a, double b, double tolerance, const char* file, int line,
                       const char* text) {
  return check(std::abs(a - b) <= tolerance, file, line, text, a, b, tolerance);
}

inline void run(const Test& test) {
  checks = failures = 0;
  try {
    test.body();
    if (checks == 0) check(false, test.name, 0, "the test ran no check");
  } catch (const std::exception& error) {
    check(false, test.name, 0, "unexpected exception", error.what());
  }
}

inline int run_all(std::string_view option, std::string_view filter) {
  const bool list = option == "--list";
  thorough = option == "--thorough";
  int passed = 0, failed = 0;
  std::cout.precision(17), std::cerr.precision(17);
  for (const Test& test : tests) {
    if (std::string_view(test.name).find(filter) == std::string_view::npos) continue;
    if (list) {
      std::cout << test.name << std::endl;
      continue;
    }
    run(test);
    ++(failures > 0 ? failed : passed);
    if (failures > 0) std::cerr << "FAILED " << test.name << std::endl;
  }
  if (list) return 0;
  std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed > 0 || passed == 0 ? 1 : 0;
}

}  // namespace harness

#define TEST(name)                                                            \
  static void test_##name();                                                  \
  static const harness::Registration registration_##name(#name, test_##name); \
  static void test_##name()
#define CHECK(expr) harness::check(static_cast<bool>(expr), __FILE__, __LINE__, #expr)
#define CHECK_EQ(a, b) harness::check_eq((a), (b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_NEAR(a, b, tolerance) \
  harness::check_near((a), (b), (tolerance), __FILE__, __LINE__, #a " near " #b)
#define CHECK_THROWS(type, expr)                                              \
  [&] {                                                                       \
    try {                                                                     \
      static_cast<void>(expr);                                                \
    } catch (const type&) {                                                   \
      return harness::check(true, __FILE__, __LINE__, #expr);                 \
    }                                                                         \
    return harness::check(false, __FILE__, __LINE__, #expr " throws " #type); \
  }()

int main(int argc, char** argv) {
  return harness::run_all(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
}
