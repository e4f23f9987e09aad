// Products with a part of a CSR matrix: some lanes a row, and by merging rows with entries.
#pragma once

#include "sums.cuh"

namespace ablations {

constexpr int kItems = 8, kRowItems = 4;  // of a thread at once, merged and of a row

// Rows of one PE, and the vector that is multiplied, of which each PE has all entries that its rows
// read: those of others are pushed there, or asked for one by one.
struct MatrixArgs {
  int begin, end;     // rows of this PE
  const int* first;   // per own row: its first entry, and one more
  const int* column;  // in all
  const double* value;
  const unsigned char* wanted;  // per own row: which PEs read its value, a bit each
  int cut[kMostPes + 1];        // where the rows of each PE begin
  int row_lanes;                // lanes that multiply a row: a power of two, at most a warp
};

struct FromOwn {
  const double* mine;
  __device__ double operator()(int j) const { return mine[j]; }
};
// nvshmem_double_g in kind: a blocking load from the memory of the PE that owns the value.
struct ByGets {
  const double* const* all;
  const int* cut;
  int pe, pes;
  __device__ double operator()(int j) const {
    if (j >= cut[pe] && j < cut[pe + 1]) return all[pe][j];
    int owner = 0;
    while (j >= cut[owner + 1]) ++owner;
    return get_value(all[owner] + j);
  }
};

// Products of entries `at`, at + step, ... before `end`; past it those of the last entry again. All
// columns are asked for before the first value of x is, so that a thread waits twice, not twice for
// each entry.
template <int kCount, class X>
__device__ void multiply(const MatrixArgs& m, int at, int step, int end, const X& x,
                         double (&products)[kCount]) {
  int column[kCount];
  ABLATIONS_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const int k = at + i * step < end ? at + i * step : end - 1;
    column[i] = m.column[k], products[i] = m.value[k];
  }
  loads_first();
  ABLATIONS_UNROLL
  for (int i = 0; i < kCount; ++i) products[i] *= x(column[i]);
}

// s = A x for local rows [low, high), and the sum of s_i x_i over them in parts.
template <class X>
__device__ double by_rows(const MatrixArgs& m, int low, int high, const X& x, double* s) {
  const int groups = static_cast<int>(lanes()) / m.row_lanes;
  const int mine = static_cast<int>(lane()) / m.row_lanes,
            part = static_cast<int>(lane()) % m.row_lanes;
  double dot = 0;
  for (int base = low; base < high; base += groups) {  // the same for all lanes of a warp
    const int row = base + mine;
    const int end = row < high ? m.first[row + 1] : 0;
    double sum = 0;
    for (int k = row < high ? m.first[row] + part : 0; k < end; k += kRowItems * m.row_lanes) {
      double products[kRowItems];
      multiply(m, k, m.row_lanes, end, x, products);
      ABLATIONS_UNROLL
      for (int i = 0; i < kRowItems; ++i) sum += k + i * m.row_lanes < end ? products[i] : 0;
    }
    for (int by = m.row_lanes / 2; by > 0; by /= 2) sum += down(sum, static_cast<unsigned>(by));
    if (row < high && part == 0) {
      s[row] = sum;
      dot += sum * x(m.begin + row);
    }
  }
  return dot;
}

// The first row after `diagonal` steps of merging n row ends with `entries` entries.
__device__ inline int merged_rows(const int* ends, int from, int n, int entries, int diagonal) {
  int low = diagonal > entries ? diagonal - entries : 0, high = diagonal < n ? diagonal : n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ends[middle] - from <= diagonal - 1 - middle)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The same for all rows of the PE by merge paths (Merrill and Garland 2016), each block and each
// thread the same number of rows and entries together. s is zero before; rows that several threads
// have a part of are added to. The block's room holds products, then row ends.
template <class X>
__device__ double by_merge(const MatrixArgs& m, int blocks, const X& x, double* s) {
  const int rows = m.end - m.begin, entries = m.first[rows], threads = static_cast<int>(lanes());
  const long long all = static_cast<long long>(rows) + entries;
  const int low = static_cast<int>(all * block() / blocks);
  const int high = static_cast<int>(all * (block() + 1) / blocks);
  double* const products = room() + kRoomOfSums;
  int* const ends = reinterpret_cast<int*>(products + threads * kItems);
  double dot = 0;
  for (int begin = low; begin < high; begin += threads * kItems) {
    const int count = high - begin < threads * kItems ? high - begin : threads * kItems;
    const int row = merged_rows(m.first + 1, 0, rows, entries, begin), entry = begin - row;
    const int last = merged_rows(m.first + 1, 0, rows, entries, begin + count);
    const int n = last - row, these = count - n;
    sync_block();  // all have read what was in the room
    if (const int mine = static_cast<int>(lane()); mine < these) {
      double some[kItems];
      multiply(m, entry + mine, threads, entry + these, x, some);
      ABLATIONS_UNROLL
      for (int i = 0; i < kItems; ++i)
        if (mine + i * threads < these) products[mine + i * threads] = some[i];
    }
    for (int k = static_cast<int>(lane()); k <= n; k += threads)
      ends[k] = (row + k < rows ? m.first[row + k + 1] : entries) - entry;
    sync_block();
    const int step = static_cast<int>(lane()) * kItems;
    const int from = step < count ? step : count,
              to = step + kItems < count ? step + kItems : count;
    int i = merged_rows(ends, 0, n, these, from), j = from - i;
    bool shared = true;  // the row may have begun before
    double sum = 0;
    for (int k = from; k < to; ++k) {
      if (j < ends[i]) {
        sum += products[j++];
        continue;
      }
      dot += sum * x(m.begin + row + i);
      shared ? add(s + row + i, sum) : store(s + row + i, sum);
      shared = false, sum = 0, ++i;
    }
    if (to > from && row + i < rows && sum != 0) {
      dot += sum * x(m.begin + row + i);
      add(s + row + i, sum);
    }
  }
  return dot;
}

}  // namespace ablations
