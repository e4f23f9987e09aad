// What kernels ask to have brought nearer before they read it.
#include <algorithm>
#include <map>

#include "harness.hpp"
#include "kernel_rig.hpp"
#include "warp_rig.hpp"

using namespace testing_rig;
using namespace testing_matrices;

namespace {

constexpr int kThreads = 32;
constexpr int kBlocks = 2;
constexpr std::int64_t kIterations = 6;

// How often each place was asked for.
std::map<const double*, std::int64_t> fetched;

class FetchingPort : public warp_rig::Port {
 public:
  using Port::Port;
  static void fetch_ahead(const void* from) { ++fetched[static_cast<const double*>(from)]; }
};

struct Case {
  Matrix<double> a = grid2d(31, 29);
  Rig rig;

  explicit Case(int pes) : rig(a, wave(a.n()), pes, kBlocks, 5) {
    rig.params.rtol = 0.0;
    rig.params.maxiter = kIterations;
    rig.params.replace_every = 3;
    rig.params.roundoff = 1e-16;
    rig.params.history_capacity = kIterations + 2;
  }
  template <template <class, class> class Algorithm, class M>
  std::vector<double> solve(bool prefetch) {
    fetched.clear();
    rig.prefetch = prefetch;
    rig.reset();
    const auto kernel = [&](FetchingPort& port, int pe) {
      solve_kernel<Algorithm, M>(port, rig.args(pe));
    };
    CHECK(warp_rig::run<FetchingPort>(rig.pes(), kBlocks, kThreads, 16, rig.heaps(), 1, kernel));
    return rig.x();
  }
};

// The least and the largest number of times for the rows of a vector.
std::pair<std::int64_t, std::int64_t> times(const double* vector, std::int32_t rows) {
  std::int64_t least = fetched[vector], most = least;
  for (const double* place = vector; place < vector + rows; ++place) {
    least = std::min(least, fetched[place]);
    most = std::max(most, fetched[place]);
  }
  return {least, most};
}

template <template <class, class> class Algorithm, class M>
void check(int pes) {
  Case c(pes);
  const auto expected = c.solve<Algorithm, M>(false);
  CHECK(fetched.empty());
  CHECK((c.solve<Algorithm, M>(true) == expected));
  CHECK(!fetched.empty());
  for (const auto& [place, count] : fetched) {
    bool known = false;
    for (int pe = 0; pe < pes; ++pe) {
      const auto& v = c.rig.args(pe).vectors;
      for (const double* vector :
           {static_cast<const double*>(v.p), static_cast<const double*>(v.x),
            static_cast<const double*>(v.r), static_cast<const double*>(v.s),
            static_cast<const double*>(v.w), static_cast<const double*>(v.z),
            static_cast<const double*>(v.n), static_cast<const double*>(v.inverse_diagonal)})
        known =
            known || (vector != nullptr && place >= vector && place < vector + c.rig.args(pe).rows);
    }
    CHECK(known);
  }
}

}  // namespace

TEST(solves_that_prefetch_ask_for_places_of_their_vectors_and_end_where_others_do) {
  for (const int pes : {1, 3}) {
    check<ConjugateGradient, Identity<double>>(pes);
    check<ConjugateGradient, Jacobi<double>>(pes);
    check<PredictRecompute, Identity<double>>(pes);
    check<PredictRecompute, Jacobi<double>>(pes);
    check<PipelinedCg, Identity<double>>(pes);
  }
}

TEST(each_row_of_a_vector_is_asked_for_before_each_loop_that_reads_it) {
  Case c(1);
  c.solve<PredictRecompute, Jacobi<double>>(true);
  const auto& args = c.rig.args(0);
  CHECK(args.rows > kBlocks * 4 * kThreads);  // more rows than are asked for at the start of a loop
  for (const double* vector :
       {static_cast<const double*>(args.vectors.x), static_cast<const double*>(args.vectors.s)}) {
    const auto [least, most] = times(vector, args.rows);  // by the update
    CHECK(least >= kIterations && most <= kIterations + 2 && most <= least + 1);
  }
  const auto [least, most] = times(args.vectors.r, args.rows);  // by the update and the product
  CHECK(least >= 2 * kIterations && most <= 2 * kIterations + 4 && most <= least + 1);
}
