// Several right-hand sides together on CPU threads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpufree/base/parallel.hpp"
#include "cpufree/plugins/cpu/find_kernel.hpp"
#include "cpufree/solvers/cpu/system.hpp"

namespace cpufree {

template <class T>
std::string CpuSystem<T>::refuses_columns() const {
  if (team_) return "with a process for each PE they are solved one by one";
  if (pairs_) return "of a complex matrix they are solved one by one";
  if (packets_) return "with halos as packets they are solved one by one";
  return {};
}

// Memory for N columns; more of it than is needed stays.
template <class T>
void CpuSystem<T>::reserve_columns(const SolveSpec& spec, std::size_t columns) {
  if (columns_.columns < columns) {
    columns_ = {};
    columns_.heap = Heap<T>(own_.all, blocks_, extent_, 0, 1, factor_spec_.any(), columns);
    columns_.heaps = std::make_unique<CpuHeaps>(own_.all, columns_.heap.bytes);
    columns_.vectors.resize(pes_.size());
    columns_.columns = columns;
  }
  for (std::size_t pe = 0; pe < pes_.size(); ++pe)
    for (std::size_t v = 0; v < kColumnVectors; ++v) {
      auto& vector = columns_.vectors[pe][v];
      const std::size_t count = at(pes_[pe].local.rows()) * columns_.columns;
      if (needed_by_columns(spec, v) && vector.size() < count) vector = Array<T>(count);
    }
}

template <class T>
template <int K>
auto CpuSystem<T>::columns_arguments(const SolveSpec& spec, bool guess,
                                     std::span<const double> scale)
    -> std::vector<SolveArgs<Matrix, K>> {
  using Values = Columns<T, K>;
  std::vector<SolveArgs<Matrix, K>> args(pes_.size());
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    auto& a = args[pe];
    const auto memory = [&](std::size_t v) {
      return reinterpret_cast<Values*>(columns_.vectors[pe][v].data());
    };
    a.params = params_of_columns<T>(spec, diagonal_.bound, guess, K);
    for (std::size_t k = 0; k < K; ++k) a.atol[k] = spec.atol * scale[k];
    place_columns(a, spec, memory);
    a.vectors.inverse_diagonal = a.inverse_diagonal =
        pes_[pe].vectors[index_.inverse_diagonal].data();
    columns_.heap.place(a, columns_.heaps->base(static_cast<int>(pe)));
    a.shares = pes_[pe].views.data();
    a.factors = pes_[pe].factor_views.data();
    const auto& names = pes_[pe].names;
    a.global_row = names.empty() ? pes_[pe].local.global_row.data() : names.data();
    a.rows = pes_[pe].local.rows();
    a.send_ptr = pes_[pe].local.send_ptr.data();
    a.destinations = pes_[pe].local.destinations.data();
    a.source = pes_[pe].ghost_source.data();
  }
  return args;
}

// b and guesses, side by side and scaled, by all cores.
template <class T>
template <int K>
void CpuSystem<T>::load_columns(const ColumnViews<T>& from, std::span<const double> scale) {
  const auto load = [&](const auto& views, std::size_t pe, std::size_t v) {
    auto* const to = reinterpret_cast<Columns<T, K>*>(columns_.vectors[pe][v].data());
    const auto& rows = pes_[pe].local.global_row;
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (int k = 0; k < K; ++k)
        to[i][k] =
            static_cast<T>(scale[at(k)] * static_cast<double>(views[at(k)].data[at(rows[i])]));
  };
  in_parallel(static_cast<int>(pes_.size()), [&](int pe) {
    load(from.b, at(pe), ColumnVector::b);
    if (!from.x0.empty()) load(from.x0, at(pe), ColumnVector::x);
  });
}

// out = x / scale of column k. Returns whether all entries are finite.
template <class T>
template <int K>
bool CpuSystem<T>::store_column(int k, std::span<T> out, double scale) const {
  bool finite = true;
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    const auto* const x =
        reinterpret_cast<const Columns<T, K>*>(columns_.vectors[pe][ColumnVector::x].data());
    const auto& rows = pes_[pe].local.global_row;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const T value = static_cast<T>(static_cast<double>(x[i][k]) / scale);
      out[at(rows[i])] = value;
      finite = finite && std::isfinite(value);
    }
  }
  return finite;
}

template <class T>
template <int K>
std::vector<SolveResult> CpuSystem<T>::solve_together(const ColumnViews<T>& vectors,
                                                      const SolveSpec& spec,
                                                      const Progress& progress) {
  std::vector<double> scale;
  for (const auto& b : vectors.b) scale.push_back(scale_from(largest_size(b.span())));
  reserve_columns(spec, K);
  load_columns<K>(vectors, scale);
  auto args = columns_arguments<K>(spec, !vectors.x0.empty(), scale);
  const std::size_t capacity = at(args[0].params.history_capacity);
  std::vector<Outcome> outcomes(K);
  std::vector<double> history(K * capacity);
  args[0].outcome = outcomes.data();
  args[0].history = history.data();
  const auto kernel = find_cpu_kernel<T, K>(spec, {false, single_values_});
  cpu_threads::LaunchConfig config;
  config.pes = own_.all;
  config.blocks = blocks_;
  config.heaps = columns_.heaps->bases();
  // Channels start at epoch 0 in every launch.
  for (int pe = 0; pe < own_.all; ++pe)
    std::memset(static_cast<void*>(columns_.heaps->base(pe)), 0, columns_.heap.channel_bytes);
  const ThreadsRun ran = run_on_threads(
      config, spec.limits(), [&](cpu_threads::Port& port) { kernel(port, args[at(port.pe())]); },
      unscaled_columns(progress, scale));
  std::vector<SolveResult> results(K);
  for (std::size_t k = 0; k < K; ++k) {
    SolveResult& result = results[k];
    result.outcome = outcomes[k];
    const double* const first = history.data() + k * capacity;
    result.history.assign(first, first + result.outcome.history_count);
    result.seconds = ran.seconds;
    result.disturbances = ran.disturbances;
    const bool finite = store_column<K>(static_cast<int>(k), vectors.out[k].span(), scale[k]);
    unscale(result, scale[k], scale[k] != 1.0 && !finite);
  }
  return results;
}

template <class T>
std::vector<SolveResult> CpuSystem<T>::solve_columns(const ColumnViews<T>& vectors,
                                                     const SolveSpec& spec,
                                                     const Progress& progress) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone) throw SystemBusy();
  require_usable(usable_);
  check_columns(spec, vectors, rows_);
  require_factors(spec, factor_spec_);
  refuse_block_of_singles(spec, single_values_);
  if (const std::string why = refuses_columns(); !why.empty()) throw Unsupported(why);
  for (const auto& view : vectors.b)
    if (!view.on_host())
      throw Unsupported("the engine cpu_threads takes vectors in host memory only");
  return with_columns(vectors.b.size(),
                      [&]<int K>() { return solve_together<K>(vectors, spec, progress); });
}

#define CPUFREE_FOR(T)                                           \
  template std::string CpuSystem<T>::refuses_columns() const;    \
  template std::vector<SolveResult> CpuSystem<T>::solve_columns( \
      const ColumnViews<T>&, const SolveSpec&, const Progress&);
CPUFREE_FOR(float)
CPUFREE_FOR(double)
#undef CPUFREE_FOR

}  // namespace cpufree
