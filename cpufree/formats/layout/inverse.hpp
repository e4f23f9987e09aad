// Kernels that make the factor G of a factorised sparse approximate inverse on a GPU, and its
// transpose: what approximate_inverse.cpp does on the host, in the same sequence, row by row.
#pragma once

#include "cpufree/formats/layout/rows.hpp"

namespace cpufree::layout {

inline constexpr std::int32_t kMostInverse = 64;      // entries of a row of G
inline constexpr std::int32_t kOnChipInverse = 40;    // of one whose Cholesky factor is on chip
inline constexpr std::int32_t kMostOfInverse = 1024;  // of a row of A that takes part

// S of S A S: 1 / sqrt(|a_ii|), as T holds it; 1 where there is none.
template <class T>
struct ScaleInverse {
  PartRows<T> a;
  double* scale = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t row) {
      const std::int64_t k = a.find(row, a.first + row);
      const double value = k < 0 ? 0.0 : static_cast<double>(a.val[k]);
      scale[row] = value == 0.0
                       ? 1.0
                       : static_cast<double>(static_cast<T>(1.0 / std::sqrt(std::fabs(value))));
    });
  }
};

// Rows of G, a team for each. Numbers are those of the part. Row i lies from ptr[i] + i on, where
// it has room for one entry more than the row of A.
template <class T>
struct InvertRows {
  PartRows<T> a;
  const double* scale = nullptr;
  double least_pivot = 0.0;
  double least_kept = 0.0;  // of a row, relative to its diagonal
  std::int64_t teams = 1;   // that have far memory
  double* far = nullptr;    // kMostInverse (kMostInverse + 1) / 2 numbers for each
  std::int32_t* count = nullptr;
  std::int32_t* col = nullptr;
  float* val = nullptr;
  std::uint32_t* replaced = nullptr;  // rows that have their diagonal alone

  struct Memory {
    double l[kOnChipInverse * (kOnChipInverse + 1) / 2];
    double rest[kMostInverse], g[kMostInverse];
    std::int32_t list[kMostInverse];
    std::uint32_t kept[kMostOfInverse / 32];
    std::int32_t size;
    std::int32_t many;  // candidates, where they are too many
    double factor;
  };

  CPUFREE_KERNEL_FN static std::int64_t place(std::int64_t n, std::int64_t b, std::int64_t k) {
    return b * n - b * (b - 1) / 2 + k - b;  // of L, by columns
  }
  CPUFREE_KERNEL_FN bool takes_part(std::int64_t row) const {
    const std::int64_t end = a.ptr[row + 1];
    if (end - a.ptr[row] <= kMostOfInverse) return true;
    // Not counted one by one: all rows that a long one is beside ask.
    const std::int64_t beyond = a.entry_from(row, a.first) + kMostOfInverse;
    return beyond >= end || !a.has(a.col[beyond]);
  }
  // The amount of entry k of a row as S A S has it, where it may be one of G's; else 0.
  CPUFREE_KERNEL_FN double candidate(std::int64_t row, std::int64_t k) const {
    const std::int64_t column = a.col[k] - a.first;
    if (column < 0 || column >= row) return 0.0;
    const double size = std::fabs(static_cast<double>(a.val[k]) * scale[row] * scale[column]);
    return size > 0.0 && takes_part(column) ? size : 0.0;
  }
  template <class P>
  CPUFREE_KERNEL_FN void list_columns(const P& port, std::int64_t row, Memory& m) const {
    const std::int64_t begin = a.ptr[row], end = a.ptr[row + 1];
    const bool part = takes_part(row);
    if (port.team_lane() == 0) {
      m.size = m.many = 0;
      for (std::int64_t k = begin; part && k < end; ++k) {
        if (candidate(row, k) == 0.0) continue;
        if (m.size < kMostInverse - 1)
          m.list[m.size++] = static_cast<std::int32_t>(a.col[k] - a.first);
        ++m.many;
      }
    }
    port.sync_team();
    if (m.many > kMostInverse - 1) keep_largest(port, row, m);
    if (port.team_lane() == 0) m.list[m.size++] = static_cast<std::int32_t>(row);
    port.sync_team();
  }
  // Of entries of a row that take part some may be in other rows' parts: there are few such rows.
  template <class P>
  CPUFREE_KERNEL_FN void keep_largest(const P& port, std::int64_t row, Memory& m) const {
    const std::int64_t end = a.ptr[row + 1];
    const std::int64_t first = a.entry_from(row, a.first);  // of the entries of the part
    for (int w = port.team_lane(); w < kMostOfInverse / 32; w += P::team_lanes()) m.kept[w] = 0;
    port.sync_team();
    for (std::int64_t k = first + port.team_lane(); k < end; k += P::team_lanes()) {
      const double mine = candidate(row, k);
      if (mine == 0.0) continue;
      std::int32_t before = 0;
      for (std::int64_t o = first; o < end && before < kMostInverse - 1; ++o) {
        const double other = candidate(row, o);
        before += other > mine || (other == mine && o > k) ? 1 : 0;
      }
      if (before < kMostInverse - 1) port.join(&m.kept[(k - first) / 32], 1U << ((k - first) % 32));
    }
    port.sync_team();
    if (port.team_lane() != 0) return;
    m.size = 0;
    for (std::int64_t k = first; k < end && k - first < kMostOfInverse; ++k)
      if ((m.kept[(k - first) / 32] >> ((k - first) % 32) & 1U) != 0)
        m.list[m.size++] = static_cast<std::int32_t>(a.col[k] - a.first);
  }
  // The Cholesky factor of what the list names; false: it is not positive definite.
  template <class P>
  CPUFREE_KERNEL_FN bool factorize(const P& port, Memory& m, double* l) const {
    const std::int32_t n = m.size;
    for (std::int32_t r = 0; r < n; ++r) {
      const std::int32_t row = m.list[r];
      for (std::int32_t b = port.team_lane(); b <= r; b += P::team_lanes()) {
        const std::int64_t k = a.find(row, a.first + m.list[b]);
        m.rest[b] = k < 0 ? 0.0 : static_cast<double>(a.val[k]) * scale[row] * scale[m.list[b]];
      }
      port.sync_team();
      double pivot = m.rest[r];
      for (std::int32_t b = 0; b < r; ++b) {
        const double entry = m.rest[b] / l[place(n, b, b)];
        for (std::int32_t k = b + 1 + port.team_lane(); k < r; k += P::team_lanes())
          m.rest[k] -= entry * l[place(n, b, k)];
        if (port.team_lane() == 0) l[place(n, b, r)] = entry;
        pivot -= entry * entry;
        port.sync_team();
      }
      if (!(pivot > least_pivot)) return false;
      if (port.team_lane() == 0) l[place(n, r, r)] = std::sqrt(pivot);
      port.sync_team();
    }
    return true;
  }
  // g = L^-T e, e the last unit vector.
  CPUFREE_KERNEL_FN static void last_row(Memory& m, const double* l) {
    const std::int32_t n = m.size;
    for (std::int32_t r = n; r-- > 0;) {
      double sum = r + 1 == n ? 1.0 : 0.0;
      for (std::int32_t k = r + 1; k < n; ++k) sum -= l[place(n, r, k)] * m.g[k];
      m.g[r] = sum / l[place(n, r, r)];
    }
  }
  // Without its smallest entries, so that g A g^T = |L^T g|^2 = 1 again.
  template <class P>
  CPUFREE_KERNEL_FN void thin(const P& port, Memory& m, const double* l) const {
    const std::int32_t n = m.size;
    if (port.team_lane() == 0) {
      m.many = 0;
      for (std::int32_t k = 0; k < n; ++k)
        if (std::fabs(m.g[k]) < least_kept * m.g[n - 1] && m.g[k] != 0.0) m.g[k] = 0.0, m.many = 1;
      m.factor = 1.0;
    }
    port.sync_team();
    if (m.many == 0) return;
    for (std::int32_t b = port.team_lane(); b < n; b += P::team_lanes()) {
      double entry = 0.0;
      for (std::int32_t k = b; k < n; ++k) entry += l[place(n, b, k)] * m.g[k];
      m.rest[b] = entry;
    }
    port.sync_team();
    if (port.team_lane() != 0) return;
    double sum = 0.0;
    for (std::int32_t b = 0; b < n; ++b) sum += m.rest[b] * m.rest[b];
    m.factor = 1.0 / std::sqrt(sum);
  }
  CPUFREE_KERNEL_FN void write(std::int64_t row, const Memory& m) const {
    const std::int64_t to = a.ptr[row] + row;
    std::int32_t written = 0;
    for (std::int32_t k = 0; k < m.size; ++k) {
      if (m.g[k] == 0.0) continue;
      col[to + written] = m.list[k];
      val[to + written] = static_cast<float>(m.factor * m.g[k]);
      ++written;
    }
    count[row] = written;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    static_assert(sizeof(Memory) <= P::kTeamBytes);
    Memory& m = *reinterpret_cast<Memory*>(port.team_memory());
    each_team_item(port, teams, a.count, [&](std::int64_t row) {
      list_columns(port, row, m);
      double* const l = m.size <= kOnChipInverse
                            ? m.l
                            : far + port.team() * (kMostInverse * (kMostInverse + 1) / 2);
      const bool definite = factorize(port, m, l);
      port.sync_team();
      if (port.team_lane() == 0) {
        if (definite) {
          last_row(m, l);
        } else {
          m.list[0] = static_cast<std::int32_t>(row);
          m.size = 1, m.g[0] = 1.0;
          port.add(replaced, std::uint32_t{1});
        }
        m.factor = 1.0;
      }
      port.sync_team();
      if (definite) thin(port, m, l);
      if (port.team_lane() == 0) write(row, m);
      port.sync_team();
    });
  }
};

// Rows of G one behind the other; counts entries of columns.
template <class T>
struct PackInverse {
  std::int64_t rows = 0;
  const std::int64_t* from_ptr = nullptr;  // of A
  const std::int32_t* from_col = nullptr;
  const float* from_val = nullptr;
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  float* val = nullptr;
  std::uint32_t* of_column = nullptr;  // zeroed before

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      const std::int64_t from = from_ptr[row] + row - ptr[row];
      for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k) {
        col[k] = from_col[from + k];
        val[k] = from_val[from + k];
        port.add(&of_column[col[k]], std::uint32_t{1});
      }
    });
  }
};

// Entries of the transpose, in any sequence within a row.
template <class T>
struct SpreadInverse {
  std::int64_t rows = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  const float* val = nullptr;
  const std::int64_t* to_ptr = nullptr;
  std::uint32_t* taken = nullptr;  // zeroed before
  std::int32_t* to_col = nullptr;
  float* to_val = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k) {
        const std::int64_t to = to_ptr[col[k]] + port.add(&taken[col[k]], std::uint32_t{1});
        to_col[to] = static_cast<std::int32_t>(row);
        to_val[to] = val[k];
      }
    });
  }
};

// Entries of each row by increasing column. Rows are short, a column of G having no more entries
// than the row of A, but for patterns that are not symmetric: so long ones are sorted by Shell's
// way.
template <class T>
struct SortInverse {
  std::int64_t rows = 0;
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  float* val = nullptr;

  // Of entries that lie `apart` from one another.
  CPUFREE_KERNEL_FN void sort(std::int64_t begin, std::int64_t end, std::int64_t apart) const {
    for (std::int64_t k = begin + apart; k < end; ++k) {
      const std::int32_t column = col[k];
      const float value = val[k];
      std::int64_t to = k;
      for (; to >= begin + apart && col[to - apart] > column; to -= apart)
        col[to] = col[to - apart], val[to] = val[to - apart];
      col[to] = column, val[to] = value;
    }
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      const std::int64_t begin = ptr[row], end = ptr[row + 1];
      std::int64_t apart = 1;
      while (apart < (end - begin) / 9) apart = 3 * apart + 1;
      for (; apart > 0; apart /= 3) sort(begin, end, apart);
    });
  }
};

}  // namespace cpufree::layout
