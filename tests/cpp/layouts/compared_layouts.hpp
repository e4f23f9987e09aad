// Systems laid out by the host and by GPUs, and what is compared of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/gpu/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "schedule.hpp"

namespace testing_layouts {

using namespace cpufree;
using namespace testing_matrices;

inline SystemSpec spec_for(int pes, int blocks, int layout) {
  SystemSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.threads = 64;
  spec.halo = 1;
  spec.layout = layout;
  return spec;
}

inline SolveSpec some_iterations() {
  SolveSpec spec;
  spec.preconditioner = Preconditioner::chebyshev;  // needs the bound of the spectrum, too
  spec.rtol = 0.0;
  spec.maxiter = 3;
  return spec;
}

// Where the rows of PEs begin, as a partition.
inline std::vector<std::int32_t> consecutive(std::int32_t n,
                                             const std::vector<std::int32_t>& ends) {
  std::vector<std::int32_t> part;
  for (std::int32_t pe = 0; pe < static_cast<std::int32_t>(ends.size()); ++pe)
    part.resize(at(ends[at(pe)]), pe);
  part.resize(at(n), static_cast<std::int32_t>(ends.size()) - 1);
  return part;
}

// What has been made of the matrix of a PE, addresses apart.
template <class T>
std::vector<std::vector<std::byte>> arrays_of(const PeMemory<T>& pe) {
  std::vector<std::vector<std::byte>> all;
  const auto add = [&](const auto&... arrays) {
    const auto one = [&](const auto& values) {
      const auto* const first = reinterpret_cast<const std::byte*>(values.data());
      all.emplace_back(first, first + values.size() * sizeof(values[0]));
    };
    (one(arrays.download()), ...);
  };
  add(pe.bytes, pe.slices, pe.tail_ptr, pe.tail_col, pe.tail_val, pe.dictionary, pe.feed,
      pe.feed_first, pe.partners, pe.send_ptr, pe.destinations, pe.source, pe.global_row,
      pe.vectors[private_index().inverse_diagonal]);
  return all;
}

// The number of the first array that differs, or -1.
template <class T>
int first_difference(const GpuSystem<T>& a, const GpuSystem<T>& b, int pes) {
  for (int pe = 0; pe < pes; ++pe) {
    const auto mine = arrays_of(a.pes()[at(pe)]), other = arrays_of(b.pes()[at(pe)]);
    if (mine.size() != other.size()) return 100 * pe + 99;
    for (std::size_t k = 0; k < mine.size(); ++k)
      if (mine[k] != other[k]) return 100 * pe + static_cast<int>(k);
  }
  return -1;
}

template <class T>
bool same_report(const PlanReport& a, const PlanReport& b) {
  bool same = a.pes.size() == b.pes.size() && a.halo == b.halo && a.edge_cut == b.edge_cut &&
              a.halo_values == b.halo_values && a.matrix_bytes == b.matrix_bytes &&
              a.lanes_per_row == b.lanes_per_row && a.ring_slots == b.ring_slots;
  for (std::size_t k = 0; same && k < a.pes.size(); ++k)
    same = a.pes[k].rows == b.pes[k].rows && a.pes[k].nnz == b.pes[k].nnz &&
           a.pes[k].ghosts == b.pes[k].ghosts && a.pes[k].ghost_reads == b.pes[k].ghost_reads &&
           a.pes[k].boundary_rows == b.pes[k].boundary_rows;
  return same;
}

// GPUs of eight multiprocessors, for as long as this lives.
struct LargerGpus {
  LargerGpus() {
    host_gpu::Settings settings;
    settings.multiprocessors = 8;
    host_gpu::configure(settings);
  }
  ~LargerGpus() { host_gpu::configure({}); }
};

// Makes both systems and compares all that they are made of.
template <class T>
void check_same(const Matrix<T>& a, SystemSpec spec, std::span<const std::int32_t> part = {}) {
  spec.layout = 0;
  GpuSystem<T> host(a.view(), part, {}, spec);
  spec.layout = 1;
  spec.inspect = true;
  GpuSystem<T> made(a.view(), part, {}, spec);
  CHECK(made.plan().entries.has_value());  // the GPUs have made it
  CHECK(!host.plan().entries.has_value());
  CHECK_EQ(first_difference(host, made, spec.pes), -1);
  CHECK(same_report<T>(host.plan(), made.plan()));
}

// And what they compute.
template <class T>
void check_solves(const Matrix<T>& a, SystemSpec spec) {
  spec.layout = 0;
  GpuSystem<T> host(a.view(), {}, {}, spec);
  spec.layout = 1;
  GpuSystem<T> made(a.view(), {}, {}, spec);
  const auto b = wave<T>(a.n());
  const auto one = static_cast<System<T>&>(host).solve(b, {}, some_iterations(), {});
  const auto other = static_cast<System<T>&>(made).solve(b, {}, some_iterations(), {});
  CHECK(one.x == other.x);
  CHECK_EQ(one.outcome.residual, other.outcome.residual);
}

// Every value another one, symmetric.
template <class T>
Matrix<T> different(Matrix<T> a) {
  for (std::int32_t row = 0; row < a.n(); ++row)
    for (auto k = at(a.row_ptr[at(row)]); k < at(a.row_ptr[at(row) + 1]); ++k) {
      const double i = std::min(row, a.col[k]), j = std::max(row, a.col[k]);
      a.val[k] =
          static_cast<T>(row == a.col[k] ? 500.0 + std::sin(i) : -std::abs(std::sin(i + 7 * j)));
    }
  return a;
}

// Rows in a random order.
template <class T>
Matrix<T> shuffled(const Matrix<T>& a, unsigned seed) {
  std::vector<std::int32_t> to(at(a.n()));
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::int32_t>(i);
  std::shuffle(to.begin(), to.end(), std::mt19937(seed));
  Entries e;
  for (std::int32_t row = 0; row < a.n(); ++row)
    for (auto k = at(a.row_ptr[at(row)]); k < at(a.row_ptr[at(row) + 1]); ++k)
      e[{to[at(row)], to[at(a.col[k])]}] = static_cast<double>(a.val[k]);
  return from_entries<T>(a.n(), e);
}

// Far couplings: columns in several windows, and beyond 16 bits.
template <class T>
Matrix<T> far_apart(std::int32_t n, std::int32_t step) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{i, i}] = 9.0;
    for (std::int32_t j = i + step; j < n; j += step * (1 + i % 3)) e[{i, j}] = e[{j, i}] = -1e-3;
  }
  return from_entries<T>(n, e);
}

// Rows of a node of three unknowns, coupled with nodes far away.
inline Matrix<double> far_nodes(std::int32_t nodes, std::int32_t step) {
  const auto a = far_apart<double>(nodes, step);
  Entries e;
  for (std::int32_t i = 0; i < nodes; ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      for (std::int32_t u = 0; u < 9; ++u)
        e[{3 * i + u / 3, 3 * a.col[k] + u % 3}] = u % 4 == 0 ? a.val[k] : 0.0;
  return from_entries<double>(3 * nodes, e);
}

}  // namespace testing_layouts
