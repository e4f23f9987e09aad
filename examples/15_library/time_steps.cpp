// Heat in eight plates, each on a thread of its own: finite elements, assembled again in every time
// step, as the conductivity changes. Pattern and layout stay; `update` takes the values.
//
// The plates are insulated, so that each keeps its heat: that is what the program checks.
#include <cpufree/solver.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

namespace {

constexpr int kElements = 40;  // in each direction
constexpr int kNodes = kElements + 1;
constexpr int kRows = kNodes * kNodes;
constexpr double kStep = 1e-3;

using Element = std::array<std::array<double, 4>, 4>;
// Bilinear elements on squares; nodes run around the element.
constexpr Element kStiffness = {
    {{4, -1, -2, -1}, {-1, 4, -1, -2}, {-2, -1, 4, -1}, {-1, -2, -1, 4}}};
constexpr Element kMass = {{{4, 2, 1, 2}, {2, 4, 2, 1}, {1, 2, 4, 2}, {2, 1, 2, 4}}};

// The matrices M and M + dt K of one pattern, in compressed rows.
struct Plate {
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int32_t> col;
  std::vector<double> mass, system;

  Plate() {
    for (int row = 0; row < kRows; ++row) {
      const int x = row % kNodes, y = row / kNodes;
      for (int j = std::max(0, y - 1); j <= std::min(kElements, y + 1); ++j)
        for (int i = std::max(0, x - 1); i <= std::min(kElements, x + 1); ++i)
          col.push_back(j * kNodes + i);
      row_ptr.push_back(static_cast<std::int64_t>(col.size()));
    }
    mass.resize(col.size());
    system.resize(col.size());
  }

  std::size_t place(int row, int column) const {
    const auto begin = col.begin() + row_ptr[row], end = col.begin() + row_ptr[row + 1];
    return static_cast<std::size_t>(std::lower_bound(begin, end, column) - col.begin());
  }

  // conductivity(x, y) at the middle of each element.
  template <class F>
  void assemble(F&& conductivity) {
    std::fill(mass.begin(), mass.end(), 0.0);
    std::fill(system.begin(), system.end(), 0.0);
    const double h = 1.0 / kElements;
    for (int y = 0; y < kElements; ++y)
      for (int x = 0; x < kElements; ++x) {
        const int first = y * kNodes + x;
        const std::array<int, 4> node = {first, first + 1, first + 1 + kNodes, first + kNodes};
        const double k = conductivity((x + 0.5) * h, (y + 0.5) * h);
        for (int a = 0; a < 4; ++a)
          for (int b = 0; b < 4; ++b) {
            const std::size_t at = place(node[a], node[b]);
            const double m = h * h / 36.0 * kMass[a][b];
            mass[at] += m;
            system[at] += m + kStep * k / 6.0 * kStiffness[a][b];
          }
      }
  }

  std::vector<double> mass_times(const std::vector<double>& u) const {
    std::vector<double> product(u.size(), 0.0);
    for (int row = 0; row < kRows; ++row)
      for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; ++k)
        product[row] += mass[k] * u[col[k]];
    return product;
  }
  cpufree::Csr<double> matrix() const { return {row_ptr, col, system}; }
};

double sum(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

struct Outcome {
  double lost = 1.0;  // of the heat, relative
  std::int64_t iterations = 0;
  bool converged = true;
};

Outcome run(int number) {
  Plate plate;
  const auto at_time = [&](double t) {
    return [=](double x, double y) {
      return 1.0 + 0.9 * std::sin(6.0 * x + number) * std::cos(5.0 * y + 40.0 * t);
    };
  };
  plate.assemble(at_time(0.0));
  // One PE of one thread: the threads of this program share the cores.
  cpufree::Solver solver(plate.matrix(), {.pes = 1, .blocks = 1});
  std::vector<double> u(kRows, 0.0), before;
  u[kRows / 2] = 1.0;
  const double heat = sum(plate.mass_times(u));
  Outcome outcome;
  for (int step = 1; step <= 20; ++step) {
    plate.assemble(at_time(step * kStep));
    solver.update(plate.matrix());
    before = u;
    const cpufree::Result result =
        solver.solve(plate.mass_times(before), u, {.rtol = 1e-12}, before);
    outcome.converged = outcome.converged && result;
    outcome.iterations += result.iterations;
  }
  outcome.lost = std::abs(sum(plate.mass_times(u)) - heat) / heat;
  return outcome;
}

}  // namespace

int main() {
  std::array<Outcome, 8> outcomes;
  std::array<std::string, 8> errors;
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      try {
        outcomes[k] = run(k);
      } catch (const cpufree::Error& error) {
        errors[k] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  bool good = true;
  for (int k = 0; k < 8; ++k) {
    if (!errors[k].empty()) std::printf("plate %d: %s\n", k, errors[k].c_str());
    std::printf("plate %d: %lld iterations, heat lost: %.1e\n", k,
                static_cast<long long>(outcomes[k].iterations), outcomes[k].lost);
    good = good && outcomes[k].converged && outcomes[k].lost < 1e-9;
  }
  std::printf(good ? "all plates keep their heat\n" : "failed\n");
  return good ? 0 : 1;
}
