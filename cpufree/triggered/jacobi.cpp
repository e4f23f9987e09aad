#include "cpufree/triggered/jacobi.hpp"

#include <algorithm>

#include "cpufree/base/error.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/triggered/device/triggered_jacobi.hpp"

namespace cpufree::triggered {

namespace {

using Port = cpu_threads::Port;

template <class T>
class Strips {
 public:
  explicit Strips(const JacobiRun& run)
      : run_(run),
        shape_{run.rows, run.columns, run.pes, run.blocks},
        layout_(symmetric_, {run.pes, run.blocks, 64, 2 * run.blocks, 2 * run.blocks}),
        values_(symmetric_.reserve<T>(static_cast<std::size_t>(shape_.values()))),
        heaps_(run.pes, symmetric_.bytes()) {}

  void fill(const T* u) {
    for (int number = 0; number < shape_.all(); ++number)
      for (std::int64_t row = shape_.first(number) - 1; row <= shape_.first(number + 1); ++row)
        for (int parity = 0; parity < 2; ++parity)
          std::copy_n(u + row * shape_.columns, shape_.columns, row_of(number, parity, row));
  }

  void gather(T* u) const {
    const int parity = static_cast<int>((run_.iterations + 1) % 2);
    for (int number = 0; number < shape_.all(); ++number)
      for (std::int64_t row = shape_.first(number); row < shape_.first(number + 1); ++row)
        std::copy_n(row_of(number, parity, row), shape_.columns, u + row * shape_.columns);
  }

  double run_triggered(const MakeNics& make, const std::function<void()>& look) {
    nics::NicsConfig config;
    config.layout = &layout_;
    config.heaps = heaps_.bases();
    config.bytes = symmetric_.bytes();
    const std::unique_ptr<nics::Nics> nics = make(config);
    nics->add_buffer("strips", values_.offset,
                     static_cast<std::uint64_t>(shape_.values()) * sizeof(T));
    post_all(*nics);
    const auto start = std::chrono::steady_clock::now();
    bool good = false;
    {
      cpu_threads::Launch launch(launch_config(), [&](Port& port) {
        const TriggerBoard board = layout_.board(heaps_.base(port.pe()));
        Triggers<Port> triggers(port, board, port.pe());
        const TriggeredJacobiArgs<T> args{shape_, values_.at(heaps_.base(port.pe())),
                                          run_.iterations};
        TriggeredJacobi<Port, T>(port, board, triggers, args).run();
      });
      while (!launch.wait_for(cpu_threads::kLook)) look();
      good = !launch.gave_up();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const nics::NicReport report = nics->stop();
    if (!good)
      throw EngineError("a block waited longer than allowed for a halo" + nics::describe(report));
    report_faults(report);
    return seconds.count();
  }

  double run_by_host(const std::function<void()>& look) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t e = 0; e < run_.iterations; ++e) {
      cpu_threads::Launch launch(launch_config(), [&](Port& port) { sweep(port, e); });
      while (!launch.wait_for(cpu_threads::kLook)) look();
      copy_halos(static_cast<int>(e % 2));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  T* row_of(int number, int parity, std::int64_t row) const {
    return values_.at(heaps_.base(number / shape_.blocks)) +
           shape_.place(number % shape_.blocks, parity, row - shape_.first(number));
  }

  cpu_threads::LaunchConfig launch_config() const {
    cpu_threads::LaunchConfig config;
    config.pes = run_.pes;
    config.blocks = run_.blocks;
    config.heaps = heaps_.bases();
    if (run_.way == JacobiWay::triggered) config.beside = run_.pes;
    config.wait_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * run_.wait_limit));
    return config;
  }

  void post_all(nics::Nics& nics) const {
    for (int number = 0; run_.iterations > 0 && number < shape_.all(); ++number)
      for (int side = 0; side < 2; ++side) {
        StripEdge edge;
        const int pe = number / shape_.blocks, block = number % shape_.blocks;
        if (edge_of(shape_, pe, block, side, edge) && edge.pe != pe)
          nics.post(pe, operation_of<T>(shape_, edge, block, values_.offset, run_.iterations));
      }
  }

  static void report_faults(const nics::NicReport& report) {
    if (!report.faults.empty() || !report.waiting.empty())
      throw EngineError("triggers of halos did not fit" + nics::describe(report));
  }

  void sweep(Port& port, std::uint32_t e) const {
    const int number = port.pe() * shape_.blocks + port.block();
    const int from = static_cast<int>((e + 1) % 2), to = static_cast<int>(e % 2);
    for (std::int64_t row = shape_.first(number); row < shape_.first(number + 1); ++row) {
      RowsAround<T> around{};
      around.before = row_of(number, from, row - 1);
      around.centre = row_of(number, from, row);
      around.after = row_of(number, from, row + 1);
      T* const out = row_of(number, to, row);
      for_each(port, 1, shape_.columns - 1,
               [&](std::int32_t x, int) { out[x] = jacobi_point<2, false>(around, x); });
    }
  }

  void copy_halos(int parity) const {
    for (int number = 0; number + 1 < shape_.all(); ++number) {
      const std::int64_t below = shape_.first(number + 1);
      std::copy_n(row_of(number, parity, below - 1), shape_.columns,
                  row_of(number + 1, parity, below - 1));
      std::copy_n(row_of(number + 1, parity, below), shape_.columns, row_of(number, parity, below));
    }
  }

  JacobiRun run_;
  StripShape shape_;
  SymmetricLayout symmetric_;
  TriggerLayout layout_;
  Symmetric<T> values_;
  cpu_threads::SymmetricHeaps heaps_;
};

}  // namespace

template <class T>
double jacobi(const JacobiRun& run, T* u, const MakeNics& make, const std::function<void()>& look) {
  require(run.pes >= 1 && run.blocks >= 1, "there is at least one PE of one block");
  require(run.columns >= 3, "the grid has at least three columns");
  require(run.rows - 2 >= std::int64_t{run.pes} * run.blocks,
          "the grid has " + std::to_string(run.rows - 2) + " inner rows for " +
              std::to_string(run.pes * run.blocks) + " blocks: take fewer, or more rows");
  if (run.way == JacobiWay::triggered) check_cores(run.pes, run.blocks);
  Strips<T> strips(run);
  strips.fill(u);
  const double seconds =
      run.way == JacobiWay::triggered ? strips.run_triggered(make, look) : strips.run_by_host(look);
  strips.gather(u);
  return seconds;
}

template double jacobi(const JacobiRun&, float*, const MakeNics&, const std::function<void()>&);
template double jacobi(const JacobiRun&, double*, const MakeNics&, const std::function<void()>&);

}  // namespace cpufree::triggered
