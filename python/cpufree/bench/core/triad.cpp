// A STREAM-like triad, a[i] = b[i] + s * c[i] (McCalpin 1995, "Memory bandwidth and machine balance
// in current high performance computers"): what the memory of this machine gives to `threads`
// threads. Loaded by bench/core/triad.py.
//
// Counted as in STREAM: 24 bytes per element. The line of `a` that caches read before they
// overwrite it (write-allocate) is not counted.
#include <sys/mman.h>

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr double kScale = 3.0;

struct Triad {
  std::size_t n = 0;
  int threads = 1;
  double* a = nullptr;
  double* b = nullptr;
  double* c = nullptr;

  std::size_t bound(int thread) const {
    return n / static_cast<std::size_t>(threads) * static_cast<std::size_t>(thread);
  }
  std::size_t end(int thread) const { return thread + 1 == threads ? n : bound(thread + 1); }

  // Calls f(thread) on all threads; the caller is thread 0.
  template <class F>
  void on_all(F&& f) const {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(f, t);
    f(0);
    for (std::thread& other : others) other.join();
  }
};

// Huge pages, as the solver's own memory has them; else the triad would be too easy to match.
double* allocate(std::size_t n) {
  const std::size_t bytes = (n * sizeof(double) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory != nullptr) madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<double*>(memory);
}

void pass(double* __restrict a, const double* __restrict b, const double* __restrict c,
          std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) a[i] = b[i] + kScale * c[i];
}

}  // namespace

extern "C" {

void triad_destroy(void* handle) {
  auto* const triad = static_cast<Triad*>(handle);
  std::free(triad->a);
  std::free(triad->b);
  std::free(triad->c);
  delete triad;
}

// Three arrays of n doubles, each part first touched by the thread that will use it. Null: no
// memory.
void* triad_create(std::size_t n, int threads) {
  auto* const triad = new Triad{n, threads, allocate(n), allocate(n), allocate(n)};
  if (!triad->a || !triad->b || !triad->c) {
    triad_destroy(triad);
    return nullptr;
  }
  triad->on_all([triad](int t) {
    for (std::size_t i = triad->bound(t); i < triad->end(t); ++i) {
      triad->a[i] = 0.0;
      triad->b[i] = static_cast<double>(i);
      triad->c[i] = 0.5;
    }
  });
  return triad;
}

// Seconds per pass, mean of `passes` with a barrier after each.
double triad_run(void* handle, int passes) {
  const Triad& triad = *static_cast<Triad*>(handle);
  std::barrier together(triad.threads);
  std::chrono::steady_clock::time_point start;
  triad.on_all([&](int t) {
    together.arrive_and_wait();
    if (t == 0) start = std::chrono::steady_clock::now();
    for (int k = 0; k < passes; ++k) {
      pass(triad.a, triad.b, triad.c, triad.bound(t), triad.end(t));
      together.arrive_and_wait();
    }
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return seconds.count() / passes;
}

// How many elements of `a` are not what the passes should have made of them.
std::size_t triad_wrong(void* handle) {
  const Triad& triad = *static_cast<Triad*>(handle);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < triad.n; ++i)
    if (triad.a[i] != static_cast<double>(i) + kScale * 0.5) ++wrong;
  return wrong;
}

}  // extern "C"
