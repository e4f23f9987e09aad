// Several right-hand sides together on GPUs.
#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/solvers/gpu/kernels/table.hpp"
#include "cpufree/solvers/gpu/solve.hpp"

namespace cpufree {

using gpu::OnDevice;

// Memory for N columns, more of which stays than is needed, and for as many histories in all.
// Throws OutOfMemory; then there is none.
template <class T>
void GpuSolve<T>::reserve_columns(const SolveSpec& spec, std::size_t columns,
                                  std::size_t histories) {
  ColumnsMemory& memory = columns_;
  try {
    if (memory.columns < columns) allocate_columns(columns);
    for (std::size_t pe = 0; pe < place_.devices.size(); ++pe)
      for (std::size_t v = 0; v < kColumnVectors; ++v) {
        auto& vector = memory.vectors[pe][v];
        const std::size_t count = at(pes_[pe].private_rows) * memory.columns;
        if (needed_by_columns(spec, v) && vector.size() < count)
          vector = Array<T>::uninitialised(place_.devices[pe], count);
      }
    if (memory.history.size() < histories) {
      memory.history = {};
      memory.history = Array<double>::uninitialised(place_.devices[0], histories);
    }
  } catch (const OutOfMemory& error) {
    memory = {};
    throw OutOfMemory(std::string(error.what()) + "; " + std::to_string(columns) +
                      " right-hand sides together take as many times the vectors: solve fewer of "
                      "them together, or one by one");
  }
}

template <class T>
void GpuSolve<T>::allocate_columns(std::size_t columns) {
  ColumnsMemory& memory = columns_;
  memory = {};
  memory.heap =
      Heap<T>(place_.own.all, facts_.blocks, facts_.extent, facts_.block_halos ? facts_.packets : 0,
              1, place_.spec.factors.any(), columns);
  memory.heaps = std::make_unique<GpuHeaps>(place_.devices, memory.heap.bytes);
  memory.vectors.resize(place_.devices.size());
  std::vector<std::int32_t> first_ghost;
  for (const PeMemory<T>& pe : pes_) first_ghost.push_back(pe.rows);
  for (std::size_t pe = 0; pe < place_.devices.size(); ++pe) {
    memory.first_ghost.emplace_back(place_.devices[pe], first_ghost);
  }
  memory.outcomes = Array<Outcome>(place_.devices[0], at(kMostColumns));
  memory.columns = columns;
}

// Right-hand sides and guesses, side by side and scaled, by way of the vectors of a single solve.
// Returns the scales.
template <class T>
std::vector<double> GpuSolve<T>::load_columns(const ColumnViews<T>& from) {
  const int columns = static_cast<int>(from.b.size());
  const auto put = [&](VectorView<const T> view, int k, std::size_t index, std::size_t v,
                       auto&& scale_of) {
    const auto parts = private_vector(index);
    const double factor = scale_of(transfer_->load(view, parts));
    for (std::size_t pe = 0; pe < place_.devices.size(); ++pe) {
      const OnDevice here(place_.devices[pe]);
      put_column<T>(parts[pe].data, parts[pe].count, k, columns, factor,
                    columns_.vectors[pe][v].data(), runner_.stream(pe));
    }
    return factor;
  };
  std::vector<double> scale;
  for (int k = 0; k < columns; ++k) {
    scale.push_back(put(from.b[at(k)], k, index_.b, ColumnVector::b, scale_from));
    if (!from.x0.empty())
      put(from.x0[at(k)], k, index_.x, ColumnVector::x, [&](double) { return scale.back(); });
  }
  return scale;
}

// Every GPU's arguments; its channels are set to epoch 0 (as in set_arguments).
template <class T>
template <int K>
auto GpuSolve<T>::columns_arguments(const SolveSpec& spec, bool guess,
                                    std::span<const double> scale)
    -> std::vector<SolveArgs<Matrix, K>> {
  using Values = Columns<T, K>;
  ColumnsMemory& memory = columns_;
  std::vector<SolveArgs<Matrix, K>> args(place_.devices.size());
  for (std::size_t k = 0; k < place_.devices.size(); ++k) {
    const PeMemory<T>& pe = pes_[k];
    auto& a = args[k];
    const auto vector = [&](std::size_t v) {
      return reinterpret_cast<Values*>(memory.vectors[k][v].data());
    };
    a.params = params_of_columns<T>(spec, lambda_bound_, guess, K);
    for (std::size_t j = 0; j < K; ++j) a.atol[j] = spec.atol * scale[j];
    place_columns(a, spec, vector);
    a.vectors.inverse_diagonal = a.inverse_diagonal = pe.vectors[index_.inverse_diagonal].data();
    a.block_halos = facts_.block_halos;
    std::byte* const heap = memory.heaps->base(static_cast<int>(k));
    memory.heap.place(a, heap);
    a.shares = pe.shares.data();
    a.factors = pe.factors.shares.data();
    a.global_row = pe.names.data() == nullptr ? pe.global_row.data() : pe.names.data();
    a.rows = pe.rows;
    a.send_ptr = pe.send_ptr.data();
    a.destinations = pe.destinations.data();
    a.first_ghost =
        facts_.packets > 0 && !facts_.block_halos ? memory.first_ghost[k].data() : nullptr;
    a.source = pe.source.data();
    const OnDevice here(place_.devices[k]);
    gpu::clear(heap, memory.heap.channel_bytes, runner_.stream(k));
  }
  const OnDevice first(place_.devices[0]);
  gpu::clear(memory.outcomes.data(), K * sizeof(Outcome), runner_.stream(0));
  args[0].outcome = memory.outcomes.data();
  args[0].history = memory.history.data();
  runner_.synchronize();
  return args;
}

// out = x / scale of column k. Returns whether all entries are finite.
template <class T>
bool GpuSolve<T>::store_column(std::size_t k, std::size_t columns, VectorView<T> out,
                               double scale) {
  const auto parts = private_vector(index_.x);
  for (std::size_t pe = 0; pe < place_.devices.size(); ++pe) {
    const OnDevice here(place_.devices[pe]);
    take_column<T>(columns_.vectors[pe][ColumnVector::x].data(), parts[pe].count,
                   static_cast<int>(k), static_cast<int>(columns), parts[pe].data,
                   runner_.stream(pe));
  }
  return transfer_->store(parts, scale, out);
}

template <class T>
template <int K>
std::vector<SolveResult> GpuSolve<T>::solve_together(const ColumnViews<T>& vectors,
                                                     const SolveSpec& spec,
                                                     const Progress& progress) {
  GpuKernel kernel;
  kernel.function =
      kernels_for<T>(spec, {.kinds = kinds_of(facts_), .devices = place_.devices, .columns = K})
          .runs.plain;
  kernel.blocks = facts_.blocks;
  kernel.threads = facts_.threads;
  runner_.load(kernel);
  require_residency(kernel, place_.devices);
  reserve(spec, params_of<T>(spec, 0.0, false));
  const std::size_t capacity =
      at(params_of_columns<T>(spec, lambda_bound_, false, K).history_capacity);
  reserve_columns(spec, K, K * capacity);
  const std::vector<double> scale = load_columns(vectors);
  const auto args = columns_arguments<K>(spec, !vectors.x0.empty(), scale);
  std::vector<const void*> given;
  for (const auto& a : args) given.push_back(&a);
  auto all = shared();
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const GpuHeaps& heaps = *columns_.heaps;
    for (std::size_t to = 0; to < all.size(); ++to)
      all[pe].heaps[to] = heaps.base(static_cast<int>(to));
    all[pe].leave = columns_.heap.leave.at(heaps.base(static_cast<int>(pe)));
  }
  const double seconds =
      runner_.run(kernel, all, given, spec.limits(), unscaled_columns(progress, scale), nullptr);
  const OnDevice here(place_.devices[0]);
  const auto outcomes = columns_.outcomes.download();
  std::vector<SolveResult> results(K);
  for (std::size_t k = 0; k < K; ++k) {
    SolveResult& result = results[k];
    result.outcome = outcomes[k];
    result.history.resize(at(result.outcome.history_count));
    gpu::copy_to_host(result.history.data(), columns_.history.data() + k * capacity,
                      result.history.size() * sizeof(double));
    result.seconds = seconds;
    const bool finite = store_column(k, K, vectors.out[k], scale[k]);
    unscale(result, scale[k], scale[k] != 1.0 && !finite);
  }
  return results;
}

template <class T>
std::vector<SolveResult> GpuSolve<T>::solve_columns(const ColumnViews<T>& vectors,
                                                    const SolveSpec& spec,
                                                    const Progress& progress) {
  return with_columns(vectors.b.size(),
                      [&]<int K>() { return solve_together<K>(vectors, spec, progress); });
}

template std::vector<SolveResult> GpuSolve<float>::solve_columns(const ColumnViews<float>&,
                                                                 const SolveSpec&, const Progress&);
template std::vector<SolveResult> GpuSolve<double>::solve_columns(const ColumnViews<double>&,
                                                                  const SolveSpec&,
                                                                  const Progress&);

}  // namespace cpufree
