// The kernels of bench/ablations on CPU threads: each variant makes the iterations of CG, on one PE
// and on two.
#include "words_on_threads.hpp"

#include "bench/ablations/cg.cuh"
#include "bench/ablations/jacobi.cuh"
#include "bench/ablations/system.hpp"
#include "harness.hpp"

using namespace ablations;

namespace {

constexpr int kBlocks = 3, kThreads = 32, kIterations = 6;

// A grid in two dimensions with one long row, positive definite.
System system_of(int side) {
  System a;
  const int n = side * side;
  a.first.push_back(0);
  for (int i = 0; i < n; ++i) {
    std::vector<int> beside;
    for (const int j : {i - side, i - 1, i, i + 1, i + side})
      if (j >= 0 && j < n) beside.push_back(j);
    const int hub = n / 2 + 3;
    if (i == hub)
      for (int j = 0; j < n; j += 5) beside.push_back(j);
    else if (i % 5 == 0)
      beside.push_back(hub);
    std::sort(beside.begin(), beside.end());
    beside.erase(std::unique(beside.begin(), beside.end()), beside.end());
    for (const int j : beside) {
      a.column.push_back(j);
      a.value.push_back(j == i ? 6.0 : (i == hub || j == hub) ? -0.02 : -0.9);
    }
    a.first.push_back(static_cast<int>(a.column.size()));
    a.b.push_back(1.0 + i % 7);
  }
  return a;
}

// What the kernels of all PEs need, on the host.
struct Memory {
  std::vector<Part> part;
  std::vector<std::vector<double>> vectors;
  std::vector<std::vector<Packet>> packets;
  std::vector<double> norm2;
  std::vector<CgArgs> args;

  double* doubles(std::size_t n) {
    vectors.emplace_back(n, 0.0);
    return vectors.back().data();
  }
  Packet* slots(int pes) {
    packets.emplace_back(static_cast<std::size_t>(2 * pes * kBlocks * kMostSums), Packet{0, 0});
    return packets.back().data();
  }

  Memory(const System& a, int pes) : norm2(static_cast<std::size_t>(pes)) {
    const std::vector<int> cut = cuts(a, pes);
    part = parts(a, cut);
    const auto n = static_cast<std::size_t>(a.rows());
    args.resize(static_cast<std::size_t>(pes));
    for (int pe = 0; pe < pes; ++pe) {
      CgArgs& mine = args[static_cast<std::size_t>(pe)];
      const Part& own = part[static_cast<std::size_t>(pe)];
      const int skip = a.first[static_cast<std::size_t>(own.begin)];
      mine.matrix = {own.begin,
                     own.end,
                     own.first.data(),
                     a.column.data() + skip,
                     a.value.data() + skip,
                     own.wanted.data(),
                     {},
                     row_lanes(a)};
      std::copy(cut.begin(), cut.end(), mine.matrix.cut);
      mine.b = a.b.data() + own.begin;
      for (double** v : {&mine.x, &mine.r, &mine.s, &mine.p, &mine.z, &mine.q}) *v = doubles(n);
      for (SumArgs* sums : {&mine.sums, &mine.meeting}) {
        sums->pe = pe, sums->pes = pes, sums->blocks = kBlocks;
        sums->totals = slots(pes);
        sums->partial = doubles(2 * kBlocks * kMostSums);
        sums->slots[pe] = slots(pes);
        sums->leaders[pe] = slots(pes);
      }
      for (auto& operand : mine.operand) operand[pe] = doubles(n);
      mine.iterations = kIterations;
      mine.norm2 = &norm2[static_cast<std::size_t>(pe)];
    }
    for (CgArgs& mine : args)
      for (int pe = 0; pe < pes; ++pe) {
        const CgArgs& other = args[static_cast<std::size_t>(pe)];
        for (int k = 0; k < 2; ++k) mine.operand[k][pe] = other.operand[k][pe];
        mine.sums.slots[pe] = other.sums.slots[pe];
        mine.sums.leaders[pe] = other.sums.leaders[pe];
        mine.meeting.slots[pe] = other.meeting.slots[pe];
        mine.meeting.leaders[pe] = other.meeting.leaders[pe];
      }
  }
};

using Kernel = void (*)(const CgArgs&);

void check_kernel(const System& a, int pes, Kernel kernel, bool pipelined = false) {
  Memory memory(a, pes);
  const int doubles = kRoomOfSums + kThreads * kItems * 2;
  run_on_threads(pes, kBlocks, kThreads, doubles,
                 [&](int pe) { kernel(memory.args[static_cast<std::size_t>(pe)]); });
  std::vector<double> x;
  for (const CgArgs& mine : memory.args)
    x.insert(x.end(), mine.x, mine.x + (mine.matrix.end - mine.matrix.begin));
  const double expected = reference(a, kIterations);
  const double found = residual(a, x, a.b);
  CHECK(expected < 0.1 * reference(a, 0));
  CHECK(std::abs(found / expected - 1) < 1e-6);
  // pipecg knows the norm before its last step.
  const double known = std::sqrt(memory.norm2[0]);
  CHECK(std::abs(known / reference(a, kIterations - (pipelined ? 1 : 0)) - 1) < 1e-6);
}

}  // namespace

TEST(each_variant_makes_the_iterations_of_cg) {
  const System a = system_of(13);
  check_kernel(a, 1, cg<FlagSums, Halo::push, Product::rows>);
  check_kernel(a, 1, cg<GridSums, Halo::push, Product::rows>);
  check_kernel(a, 1, pipecg<OneBlockSums, 1, true>, true);
  check_kernel(a, 2, cg<FlagSums, Halo::push, Product::merge>);
  check_kernel(a, 2, cg<FlagSums, Halo::gets, Product::rows>);
  check_kernel(a, 2, cg<GridSums, Halo::push, Product::rows>);
  check_kernel(a, 2, pipecg<FlagSums, 0, true>, true);
  check_kernel(a, 2, pipecg<OneBlockSums, 1, true>, true);
}

TEST(parts_of_an_iteration_by_themselves_change_nothing_else) {
  const System a = system_of(13);
  for (const Kernel kernel : {cg_only<Only::products>, cg_only<Only::dots>, cg_only<Only::updates>,
                              cg_only<Only::sums>}) {
    Memory memory(a, 1);
    run_on_threads(1, kBlocks, kThreads, kRoomOfSums, [&](int) { kernel(memory.args[0]); });
    const CgArgs& mine = memory.args[0];
    const bool multiplies = kernel == cg_only<Only::products>;
    for (int i = 0; i < a.rows(); ++i) {
      double product = 0;
      for (int e = a.first[i]; e < a.first[i + 1]; ++e) product += a.value[e] * a.b[a.column[e]];
      CHECK(mine.x[i] == 0 && mine.r[i] == a.b[i] && mine.operand[0][0][i] == a.b[i]);
      CHECK(std::abs(mine.s[i] - (multiplies ? product : a.b[i])) < 1e-12);
    }
    CHECK(*mine.norm2 == 0);
  }
}

namespace {

// Rows kept, blocks of a cluster, and the slab at which a second kernel begins; 0: one kernel.
struct Form {
  int kept, cluster, second;
};

std::vector<float> jacobi_of(int nx, int ny, int slabs, int iterations, const Form& form,
                             const std::vector<float>& start) {
  const auto points = start.size();
  std::vector<float> one(points), two(points), edges(static_cast<std::size_t>(4 * slabs * ny));
  std::vector<Epoch> done(static_cast<std::size_t>(slabs * kFlagStep));
  JacobiArgs a = {nx, ny, slabs, 0, form.kept, form.cluster, iterations, start.data(), {}, {}, {}};
  a.values[0] = one.data(), a.values[1] = two.data(), a.edges = edges.data(), a.done = done.data();
  const int doubles = (form.kept + 4) * ny / 2 + 1;
  const auto run = [&](int first, int count) {
    JacobiArgs mine = a;
    mine.first = first;
    run_on_threads(1, count, 32, doubles, [&](int) { Jacobi<2>(mine).run(); }, form.cluster);
  };
  if (form.second == 0) {
    run(0, slabs);
  } else {
    std::thread other([&] { run(form.second, slabs - form.second); });
    run(0, form.second);
    other.join();
  }
  return iterations % 2 == 0 ? one : two;
}

}  // namespace

TEST(grids_kept_in_part_or_by_clusters_or_two_kernels_have_the_same_bits) {
  constexpr int nx = 42, ny = 40, slabs = 4;
  std::vector<float> start(nx * ny);
  for (std::size_t i = 0; i < start.size(); ++i)
    start[i] = static_cast<float>((i * 7919) % 101) / 7.0F;
  for (const int iterations : {1, 6}) {
    std::vector<float> now = start, next = start;
    for (int t = 0; t < iterations; ++t, std::swap(now, next))
      for (int i = 1; i < nx - 1; ++i)
        for (int j = 1; j < ny - 1; ++j) {
          const auto at = static_cast<std::size_t>(i * ny + j);
          next[at] = 0.25F * ((now[at - ny] + now[at + ny]) + (now[at - 1] + now[at + 1]));
        }
    for (const Form& form :
         {Form{0, 1, 0}, Form{2, 1, 0}, Form{6, 1, 0}, Form{6, 2, 0}, Form{6, 4, 0}, Form{2, 1, 1}})
      CHECK(jacobi_of(nx, ny, slabs, iterations, form, start) == now);
  }
}
