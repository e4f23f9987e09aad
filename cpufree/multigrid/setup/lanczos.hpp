// Kernels that make a hierarchy on a GPU: the largest eigenvalue of a level's matrix, by the steps
// of `lanczos` in strength.cpp. Nothing comes to the host before the last step: kernels read the
// sums of the ones before.
#pragma once

#include "cpufree/multigrid/setup/strength.hpp"

namespace cpufree::multigrid::setup {

// One sum, in enough parts that threads do not wait for one another.
inline constexpr int kSumParts = 64;
struct PartedSum {
  std::uint64_t* part = nullptr;  // kSumParts

  template <class P>
  CPUFREE_KERNEL_FN void add(const P& port, std::uint64_t mine) const {
    port.add_together(&part[port.team() % kSumParts], mine);
  }
  CPUFREE_KERNEL_FN double value() const {
    std::uint64_t sum = 0;
    for (int k = 0; k < kSumParts; ++k) sum += part[k];
    return from_fixed(sum);
  }
};

struct BeginLanczos {
  std::int64_t rows = 0;
  double* v = nullptr;
  double* before = nullptr;
  PartedSum square;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    std::uint64_t sum = 0;
    each_item(port, rows, [&](std::int64_t i) {
      const double start =
          lanczos_start(static_cast<std::int32_t>(i), static_cast<std::int32_t>(rows));
      v[i] = start;
      before[i] = 0.0;
      sum += fixed(start * start);
    });
    square.add(port, sum);
  }
};

// w = A v, or the filtered matrix times v where `root` is not null: the inverse roots of its
// diagonal. Entries of that are in single precision, as on the host.
struct MultiplyLanczos {
  Rows a;
  Bits strong;
  const double* root = nullptr;
  const double* v = nullptr;
  double* w = nullptr;
  PartedSum square, product;  // of v, with w
  int row_lanes = 32;

  // What a lane adds of a row.
  CPUFREE_KERNEL_FN double part_of_row(std::int64_t row, int lane, int lanes_of_row) const {
    const std::int64_t begin = a.ptr[row];
    double sum = root == nullptr || lane > 0 ? 0.0 : v[row];  // the diagonal is 1
    for (std::int64_t k = begin + lane; k < a.ptr[row + 1]; k += lanes_of_row) {
      const std::int32_t column = a.col[k];
      if (root == nullptr)
        sum += a.val[k] * v[column];
      else if (strong(row, begin, k))
        sum += static_cast<float>(a.val[k] * root[row] * root[column]) * v[column];
    }
    return sum;
  }
  template <class P>
  CPUFREE_KERNEL_FN std::uint64_t rows_of(const P& port) const {
    const double inverse = 1.0 / std::sqrt(square.value());
    std::uint64_t sum = 0;
    each_team_item(port, a.count, a.count, [&](std::int64_t row) {
      const double part = part_of_row(row, port.team_lane(), P::team_lanes());
      const double mine = inverse * port.sum_together(part);
      if (port.team_lane() > 0) return;
      w[row] = mine;
      sum += fixed(inverse * v[row] * mine);
    });
    return sum;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    product.add(port, in_teams(port, row_lanes, [&](const auto& teams) { return rows_of(teams); }));
  }
};

// The next v, from A v. `first`: there is none before.
struct StepLanczos {
  std::int64_t rows = 0;
  bool first = false;
  double* v = nullptr;
  double* before = nullptr;
  const double* w = nullptr;
  PartedSum square, product, next;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    const double norm = std::sqrt(square.value());
    const double inverse = 1.0 / norm, beta = first ? 0.0 : norm, alpha = product.value();
    std::uint64_t sum = 0;
    each_item(port, rows, [&](std::int64_t i) {
      const double mine = inverse * v[i];
      const double made = w[i] - alpha * mine - beta * before[i];
      v[i] = made;
      before[i] = mine;
      sum += fixed(made * made);
    });
    next.add(port, sum);
  }
};

}  // namespace cpufree::multigrid::setup
