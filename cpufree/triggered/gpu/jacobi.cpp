#include <algorithm>

#include "cpufree/triggered/gpu/rig.hpp"
#include "cpufree/triggered/gpu/studies.hpp"
#include "cpufree/triggered/nics/host_port.hpp"

namespace cpufree::triggered {

namespace {

constexpr std::uint32_t kLookPeriod = 256;  // iterations between two calls of `look`

std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

template <class T>
class GpuStrips {
 public:
  explicit GpuStrips(const GpuJacobiRun& run)
      : run_(run),
        shape_{run.rows, run.columns, static_cast<int>(run.devices.size()), run.blocks},
        rig_(run.devices, {shape_.pes, run.blocks, 64, 2 * run.blocks, 2 * run.blocks},
             run.wait_limit),
        values_(rig_.layout.reserve<T>(at(shape_.values()))) {
    rig_.options.operations = 2;  // of a PE, those of its first and its last strip
    rig_.allocate();
    const bool single = sizeof(T) == sizeof(float);
    kernel_ = triggers() ? jacobi_kernel(GpuRig::counts_by_words(run.back_end), single)
                         : jacobi_step_kernel(single);
    rig_.prepare(kernel_, grid(), triggers() ? run.back_end : "none");
  }

  void fill(const T* u) const {
    for (int pe = 0; pe < shape_.pes; ++pe) {
      std::vector<T> values(at(shape_.values()));
      for (int block = 0; block < shape_.blocks; ++block) {
        const int number = pe * shape_.blocks + block;
        for (std::int64_t row = shape_.first(number) - 1; row <= shape_.first(number + 1); ++row)
          for (int parity = 0; parity < 2; ++parity)
            std::copy_n(u + row * shape_.columns, shape_.columns,
                        values.data() + shape_.place(block, parity, row - shape_.first(number)));
      }
      gpu::copy_to_device(rig_.pes.device(pe), values_.at(rig_.pes.heap(pe)), values.data(),
                          values.size() * sizeof(T));
    }
  }

  void gather(T* u) const {
    const int parity = static_cast<int>((run_.iterations + 1) % 2);
    for (int pe = 0; pe < shape_.pes; ++pe) {
      std::vector<T> values(at(shape_.values()));
      gpu::copy_to_host(values.data(), values_.at(rig_.pes.heap(pe)), values.size() * sizeof(T));
      for (int block = 0; block < shape_.blocks; ++block) {
        const int number = pe * shape_.blocks + block;
        for (std::int64_t row = shape_.first(number); row < shape_.first(number + 1); ++row)
          std::copy_n(values.data() + shape_.place(block, parity, row - shape_.first(number)),
                      shape_.columns, u + row * shape_.columns);
      }
    }
  }

  // Returns seconds of the iterations.
  double run(const Look& look) {
    return rig_.guarded([&] { return run_all(look); });
  }

 private:
  double run_all(const Look& look) {
    if (triggers()) {
      rig_.make_nics(run_.back_end);
      rig_.nics->add_buffer("strips", values_.offset, at(shape_.values()) * sizeof(T));
      post_all();
    }
    make_events();
    const std::int64_t start = now();
    if (triggers()) {
      launch_all(run_.iterations);
      rig_.finish(look);
    } else {
      for (std::uint32_t e = 0; e < run_.iterations; ++e) {
        step(e);
        if (e % kLookPeriod == 0) look();
      }
      rig_.finish(look);
    }
    const double seconds = 1e-9 * static_cast<double>(now() - start);
    rig_.stop_nics();
    return seconds;
  }

  static std::int64_t now() { return static_cast<std::int64_t>(nics::HostPort::now()); }
  bool triggers() const { return run_.way == GpuJacobiWay::triggered; }
  gpu::Grid grid() const { return {run_.blocks, run_.threads, 0}; }

  void post_all() const {
    for (int number = 0; run_.iterations > 0 && number < shape_.all(); ++number)
      for (int side = 0; side < 2; ++side) {
        StripEdge edge;
        const int pe = number / shape_.blocks, block = number % shape_.blocks;
        if (edge_of(shape_, pe, block, side, edge) && edge.pe != pe)
          rig_.nics->post(pe,
                          operation_of<T>(shape_, edge, block, values_.offset, run_.iterations));
      }
  }

  void launch_all(std::uint32_t iterations) const {
    for (int pe = 0; pe < shape_.pes; ++pe) {
      const GpuJacobiArgs args{rig_.verbs(pe), shape_,
                               reinterpret_cast<std::byte*>(values_.at(rig_.pes.heap(pe))),
                               iterations};
      rig_.pes.launch(pe, kernel_, grid(), &args);
    }
  }

  void make_events() {
    for (int pe = 0; !triggers() && pe < shape_.pes; ++pe) sent_.emplace_back(rig_.pes.device(pe));
  }

  // A kernel, and copies behind it. A PE's next kernel waits for its neighbours' copies: they write
  // ghosts that it reads, and read rows that it overwrites two iterations later, when the kernel in
  // between has waited for the answer.
  void step(std::uint32_t e) const {
    launch_all(e);
    const bool by_host = run_.way == GpuJacobiWay::host;
    if (by_host) drain();
    for (int pe = 0; pe < shape_.pes; ++pe) {
      for (int side = 0; side < 2; ++side) copy_edge(pe, side, e);
      const gpu::OnDevice here(rig_.pes.device(pe));
      if (!by_host) rig_.pes.stream(pe).record(sent_[at(pe)]);
    }
    if (by_host) drain();
    for (int pe = 0; !by_host && pe < shape_.pes; ++pe) {
      const gpu::OnDevice here(rig_.pes.device(pe));
      for (const int other : {pe - 1, pe + 1})
        if (other >= 0 && other < shape_.pes) rig_.pes.stream(pe).wait_for(sent_[at(other)]);
    }
  }

  void drain() const {
    const gpu::Deadline deadline(run_.wait_limit);
    for (int pe = 0; pe < shape_.pes; ++pe) rig_.pes.stream(pe).drain(deadline, "an iteration");
  }

  void copy_edge(int pe, int side, std::uint32_t e) const {
    const int block = side == 0 ? 0 : shape_.blocks - 1;
    StripEdge edge;
    if (!edge_of(shape_, pe, block, side, edge) || edge.pe == pe) return;
    T* const values = values_.at(rig_.pes.heap(pe));
    const int parity = static_cast<int>(e % 2);
    rig_.pes.copy(
        rig_.pes.stream(pe), pe,
        reinterpret_cast<std::byte*>(values + shape_.place(block, parity, edge.row)), edge.pe,
        reinterpret_cast<std::byte*>(values + shape_.place(edge.block, parity, edge.ghost)),
        at(shape_.columns) * sizeof(T));
  }

  GpuJacobiRun run_;
  StripShape shape_;
  GpuRig rig_;
  Symmetric<T> values_;
  std::vector<gpu::Event> sent_;
  const void* kernel_ = nullptr;
};

}  // namespace

template <class T>
double gpu_jacobi(const GpuJacobiRun& run, T* u, const Look& look) {
  const auto pes = static_cast<std::int64_t>(run.devices.size());
  require(run.blocks >= 1 && run.columns >= 3, "a grid has blocks, and at least three columns");
  require(run.rows - 2 >= pes * run.blocks,
          "the grid has " + std::to_string(run.rows - 2) + " inner rows for " +
              std::to_string(pes * run.blocks) + " blocks: take fewer, or more rows");
  require(run.threads >= 32 && run.threads <= 1024 && run.threads % 32 == 0,
          "a block has 32 to 1024 threads, in whole warps");
  GpuStrips<T> strips(run);
  strips.fill(u);
  const double seconds = strips.run(look);
  strips.gather(u);
  return seconds;
}

template double gpu_jacobi(const GpuJacobiRun&, float*, const Look&);
template double gpu_jacobi(const GpuJacobiRun&, double*, const Look&);

}  // namespace cpufree::triggered
