// What systems are said to take of the memory of GPUs, beside what they take on the stand-in.
#include <cmath>
#include <cstdio>
#include <string>

#include "../multigrid/gpu_multigrid.hpp"
#include "cpufree/solvers/gpu/plan/memory.hpp"

using namespace testing_multigrid;

namespace {

Matrix<double> grid3d(std::int32_t m) {
  Entries e;
  for (std::int32_t i = 0; i < m * m * m; ++i) {
    e[{i, i}] = 6.0 + 1e-3 * i;
    if (i % m + 1 < m) e[{i, i + 1}] = e[{i + 1, i}] = -1.0;
    if (i / m % m + 1 < m) e[{i, i + m}] = e[{i + m, i}] = -1.0;
    if (i / m / m + 1 < m) e[{i, i + m * m}] = e[{i + m * m, i}] = -1.0;
  }
  return from_entries<double>(m * m * m, e);
}

// Ten matrices: grids, meshes of three unknowns a node, bands, rows of all lengths, hubs, and rows
// that no other is coupled to.
std::vector<Matrix<double>> suite() {
  return {grid2d(120, 100),
          grid2d(400, 11, 0.1),
          grid3d(22),
          irregular<double>(4000, 3),
          irregular<double>(900, 6),
          three_a_node(40, 30),
          banded(6000, 12, 30.0),
          banded(2000, 40, 90.0),
          with_hubs<double>(3000, 5, 1700),
          with_isolated_rows(grid2d(60, 50))};
}

SolveSpec solve_for(const SystemSpec& where) {
  SolveSpec how = where.first;
  if (where.factors.multigrid()) how = solve_spec();
  if (where.factors.any()) how.preconditioner = where.factors.kind;
  how.rtol = 0.0;
  how.maxiter = 2;
  return how;
}

// What arrays that are there leave unused of pages: those of half a page or more have their own.
double unused_on(int device, double page) {
  double all = 0.0, small = 0.0;
  for (const std::size_t bytes : host_gpu::arrays_on(device)) {
    const auto of = static_cast<double>(bytes);
    if (of >= page / 2)
      all += std::fmod(page - std::fmod(of, page), page);
    else
      small += 512.0 * std::ceil(of / 512.0);
  }
  return all + std::fmod(page - std::fmod(small, page), page);
}

constexpr double kPage = 32 << 10;  // small, as the matrices are

// Sets A up and solves, and checks what each GPU holds then; returns the largest miss, relative.
template <class T>
double check_memory(const Matrix<T>& a, SystemSpec where) {
  host_gpu::configure({});
  const auto part = slabs(a.n(), where.pes);
  where.first = solve_for(where);
  const GpuFacts gpu = {2, 1, 227 << 10, kPage};
  const auto said = estimate_memory<T>(a.view(), part, {}, where, gpu);
  std::vector<double> before;
  for (int pe = 0; pe < where.pes; ++pe)
    before.push_back(static_cast<double>(host_gpu::taken_on(pe)));
  const auto most = static_cast<double>(host_gpu::most_taken());
  const auto system = make_system<T>(a.view(), part, {}, where);
  const auto x = system->solve(wave<T>(a.n()), {}, where.first, {}).x;
  CHECK_EQ(std::ssize(x), std::ptrdiff_t{a.n()});
  double miss = 0.0, peaks = 0.0, pages = 0.0;
  for (std::size_t k = 0; k < said.size(); ++k) {
    const double taken = static_cast<double>(host_gpu::taken_on(static_cast<int>(k))) - before[k];
    miss = std::max(miss, std::abs((said[k].all() - said[k].pages) / taken - 1.0));
    pages = std::max(pages, std::abs(said[k].pages - unused_on(static_cast<int>(k), kPage)));
    peaks += said[k].peak;
    CHECK(said[k].peak >= said[k].all());
  }
  // Of small matrices, pieces of a least size are most of it.
  if (a.col.size() > 20'000)
    CHECK(static_cast<double>(host_gpu::most_taken()) - most <= peaks + 4e6 * where.pes);
  CHECK(pages <= 3 * kPage);
  return miss;
}

}  // namespace

TEST(what_each_gpu_is_said_to_hold_is_what_it_takes) {
  int turn = 0;   // by the host, or by the GPUs
  int first = 0;  // each matrix with some numbers of PEs, in turn, or with all
  for (const auto& a : suite()) {
    for (int k = 0; k < harness::schedules(2, 4); ++k) {
      const int pes = 1 + (first + 2 * k + k / 2) % 4;
      for (const Preconditioner kind : {Preconditioner::none, Preconditioner::amg}) {
        auto where = spec_for(pes);
        where.factors.kind = kind;
        where.layout = (turn / 2 + turn / 8) % 2;
        ++turn;
        const double miss = check_memory(a, where);
        if (miss > 0.03)
          std::printf("%d rows, %d PEs, %s, layout %d: %.3f\n", a.n(), pes,
                      preconditioner_name(kind), where.layout, miss);
        CHECK(miss <= 0.03);
      }
    }
    ++first;
  }
}

TEST(factors_are_counted_too_and_singles) {
  for (const int pes : {1, 3}) {
    auto where = spec_for(pes);
    where.factors.kind = Preconditioner::fsai;
    where.layout = 0;
    CHECK(check_memory(grid2d(60, 50), where) <= 0.03);
    where.factors.kind = Preconditioner::none;
    CHECK(check_memory(grid2d<float>(60, 50, 0.1), where) <= 0.03);
  }
}

TEST(what_does_not_fit_is_refused_with_its_parts_and_with_what_would_fit) {
  const auto a = grid2d(240, 200);  // of several pages of a driver
  for (const Preconditioner kind : {Preconditioner::none, Preconditioner::amg}) {
    auto where = spec_for(1);
    where.factors.kind = kind;
    where.layout = 0;
    where.first = solve_for(where);
    const double need =
        estimate_memory<double>(a.view(), {}, {}, where, {2, 1, 227 << 10}).front().all();
    for (const double share : {0.9, 1.1}) {
      host_gpu::Settings settings;
      settings.memory = static_cast<std::size_t>(share * need);
      host_gpu::configure(settings);
      std::string said;
      try {
        make_system<double>(a.view(), {}, {}, where);
      } catch (const OutOfMemory& error) {
        said = error.what();
      }
      CHECK_EQ(said.empty(), share > 1.0);
      if (said.empty()) continue;
      CHECK(said.find("GPU 0 has no room for this system") != std::string::npos);
      CHECK(said.find("2 such GPUs or more") != std::string::npos);
      CHECK(said.find("dtype=float32") != std::string::npos);
      CHECK((said.find("pc='jacobi'") != std::string::npos) == (kind == Preconditioner::amg));
    }
  }
  host_gpu::configure({});
}
