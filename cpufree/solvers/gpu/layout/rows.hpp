// A matrix on its GPUs: its rows, what is found in them, and the rows in the PEs' own numbers. What
// the host does for all cores in entries.cpp and halo_plan.cpp, by kernels (formats/layout), for
// PEs that have consecutive rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpufree/formats/layout/rows.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/problem/entries.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/host/system.hpp"

namespace cpufree {

// The rows of one PE, on its GPU.
template <class T>
struct GpuRows {
  explicit GpuRows(int device) : stream(device) {}
  gpu::Stream stream;
  std::int64_t first = 0;  // of them, in the matrix
  std::int32_t rows = 0;
  std::int32_t interior = 0;
  std::int64_t nnz = 0;
  std::int32_t columns = 0x7fffffff;  // where they may be fewer than rows
  gpu::DeviceArray<std::int64_t> ptr;
  gpu::DeviceArray<std::int32_t> col;
  gpu::DeviceArray<T> val;
  gpu::DeviceArray<std::int32_t> global_row;  // empty: row k is `first` + k
  // With halos of blocks: what kernels call the column of each entry, and each row.
  gpu::DeviceArray<std::int32_t> entry_name, row_name;
  gpu::DeviceArray<layout::Facts> facts;
  std::int64_t ghost_reads = 0;
  bool sound = true;  // they are rows of a matrix, as far as that has been looked at

  int device() const { return stream.device(); }
  layout::PartRows<T> part() const { return {first, rows, ptr.data(), col.data(), val.data()}; }
  const std::int32_t* names() const { return global_row.size() == 0 ? nullptr : global_row.data(); }
};

// Some numbers, downloaded.
template <class U>
std::vector<U> fetch(const gpu::Stream& stream, const U* from, std::size_t count) {
  const gpu::OnDevice here(stream.device());
  std::vector<U> values(count);
  if (count > 0) gpu::copy(values.data(), from, count * sizeof(U), stream);
  stream.wait("what a kernel has found in a matrix");
  return values;
}

// Sums of the numbers before each, and of all: count + 1 of them.
template <class T>
gpu::DeviceArray<std::int64_t> scan_numbers(const gpu::Stream& stream, const std::int32_t* numbers,
                                            std::int64_t count);
// The same, queued, as many as `sums`.
template <class T>
void scan_numbers(const gpu::Stream& stream, const std::int32_t* numbers, std::int64_t count,
                  std::int64_t* sums, std::int64_t* to);
inline std::size_t scan_sums(std::int64_t count) {
  return static_cast<std::size_t>((count + layout::kScan - 1) / layout::kScan);
}

// How many entries come before a row, wherever the matrix is.
template <class T>
std::int64_t begin_of(const GivenCsr<T>& matrix, std::int64_t row);

// The rows of all PEs, sent to their GPUs. PE k has rows [cuts[k], cuts[k + 1]). Where they do not
// begin one after the other, they are not sound, and some may be missing.
template <class T>
std::vector<GpuRows<T>> send_rows(const GivenCsr<T>& matrix, std::span<const std::int64_t> cuts,
                                  const std::vector<int>& devices);

struct FoundInRows {
  EntryReport entries;
  std::uint64_t pattern = 0;  // differs between patterns, most likely
  double distance = 0.0;      // mean of |row - column|
  std::string flaw;           // why the matrix cannot be had; "": it can
};

// Looks at all entries, as `inspect` does, or, unless `all`, at what the proofs of the channels
// need: that the arrays are rows of a matrix, and that a row of one PE reads those of another that
// read it.
template <class T>
FoundInRows check_rows(std::vector<GpuRows<T>>& rows, bool all);

// Gives each PE its rows in its own numbers. Returns the plan without rows, row numbers and
// entries.
template <class T>
HaloPlan<T> number_rows(std::vector<GpuRows<T>>& rows);

// Gives the first `moved` rows, or all, another order: row order[k] becomes row k. Entries keep
// their sequence.
template <class T>
void reorder_rows(GpuRows<T>& rows, const gpu::DeviceArray<std::int32_t>& order,
                  std::int32_t moved);

// Sorts interior rows by length where that pays (sort_by_length).
template <class T>
void sort_rows(std::vector<GpuRows<T>>& rows);

}  // namespace cpufree
