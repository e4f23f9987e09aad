// What a block keeps on chip during a solve: private vectors, and its share of the matrix.
//
// The host decides how much fits (Residency), with the same list of vectors in the same order and
// the same sizes as the kernel.
#pragma once

#include <cstddef>

#include "cpufree/base/index.hpp"
#include "cpufree/device/port.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

// Calls f(vector) for all private vectors of a set, the most used first.
template <class V, class F>
CPUFREE_FN void each_private(V& v, F&& f) {
  f(v.r), f(v.s), f(v.x), f(v.inverse_diagonal), f(v.w), f(v.z), f(v.n), f(v.u), f(v.q), f(v.out),
      f(v.rest), f(v.b);
}

CPUFREE_FN std::size_t resident_vector_bytes(const Residency& r, std::size_t value_bytes) {
  const auto bytes = [](std::int32_t count, std::int32_t length, std::size_t each) {
    return round_up16(static_cast<std::size_t>(count) * static_cast<std::size_t>(length) * each);
  };
  return bytes(r.vectors, r.stride, value_bytes) +
         bytes((r.direction ? 1 : 0) + (r.scratch ? 1 : 0), r.operand, value_bytes) +
         bytes(1, r.reads, sizeof(std::int32_t));
}

CPUFREE_FN std::size_t dictionary_bytes(const Residency& r, std::size_t value_bytes) {
  return round_up16(static_cast<std::size_t>(r.values) * value_bytes);
}

// Bytes of fast memory that a block needs: vectors and the list of reads, then its share of the
// matrix, which takes `matrix` bytes, or a dictionary and rings.
CPUFREE_FN std::size_t resident_bytes(const Residency& r, std::size_t value_bytes,
                                      std::size_t matrix) {
  return resident_vector_bytes(r, value_bytes) +
         (r.matrix ? matrix : dictionary_bytes(r, value_bytes) + ring_bytes(r.ring));
}

// My block's view of the vectors: those that are resident begin in `fast`. A block with more rows
// than there is room for (Residency::stride) has none there.
template <class M, int K>
CPUFREE_FN BlockVectors<typename M::Value, K> block_vectors(const SolveArgs<M, K>& args,
                                                            const BlockShare<M>& share,
                                                            std::byte* fast) {
  using T = ValuesOf<typename M::Value, K>;
  int count = 0;
  const bool fits = share.rows() <= args.residency.stride;
  const auto place = [&](auto* all, auto& mine) {
    if (all == nullptr) return;
    using V = decltype(mine.data);
    if (fits && count < args.residency.vectors)
      mine.data =
          reinterpret_cast<V>(fast) + static_cast<std::int64_t>(count) * args.residency.stride;
    else
      mine.data = all + share.first_private;
    ++count;
  };
  const auto& v = args.vectors;
  BlockVectors<typename M::Value, K> mine;
  place(v.r, mine.r), place(v.s, mine.s), place(v.x, mine.x);
  place(v.inverse_diagonal, mine.inverse_diagonal);
  place(v.w, mine.w), place(v.z, mine.z), place(v.n, mine.n), place(v.u, mine.u);
  place(v.q, mine.q), place(v.out, mine.out), place(v.rest, mine.rest), place(v.b, mine.b);
  const Residency& kept = args.residency;
  Residency private_alone;
  private_alone.vectors = kept.vectors, private_alone.stride = kept.stride;
  T* const own = reinterpret_cast<T*>(fast + resident_vector_bytes(private_alone, sizeof(T)));
  if (!args.block_halos) {
    mine.p = {v.p, args.halo[0], fits && kept.direction ? own : nullptr, 0};
    for (int k = 0; k < 2; ++k) mine.scratch[k] = {v.scratch[k], args.halo[1 + k], nullptr, 0};
    return mine;
  }
  // My part is all that I read of a vector: there is no second copy.
  const std::int32_t first = share.boundary.begin;
  mine.p = {kept.direction ? own : v.p + share.first_operand, args.halo[0], nullptr, first};
  for (int k = 0; k < 2; ++k)
    mine.scratch[k] = {kept.scratch ? own + kept.operand : v.scratch[k] + share.first_operand,
                       args.halo[1 + k], nullptr, first};
  return mine;
}

// The matrix while it is on chip, or comes there piece by piece. Not `used`: nothing of it is.
template <bool used, Port P, class M>
class MatrixOnChip {
 public:
  CPUFREE_KERNEL_FN MatrixOnChip(P& port, const M& matrix) : port_(port), matrix_(matrix) {
    if constexpr (used && requires { matrix.open(port); }) matrix.open(port);
  }
  CPUFREE_KERNEL_FN ~MatrixOnChip() {
    if constexpr (used && requires(const M& m, P& p) { m.close(p); }) matrix_.close(port_);
  }
  MatrixOnChip(const MatrixOnChip&) = delete;
  MatrixOnChip& operator=(const MatrixOnChip&) = delete;

 private:
  P& port_;
  const M& matrix_;
};

// My block's share of the matrix, with what the residency says of it. A barrier is to follow.
template <Port P, class M>
CPUFREE_KERNEL_FN M resident_matrix(P& port, const SolveArgs<M>& args, const M& matrix,
                                    std::byte* fast) {
  std::byte* const to = fast + resident_vector_bytes(args.residency, sizeof(typename M::Value));
  if (args.residency.matrix) return matrix.resident(port, to);
  if constexpr (requires { matrix.streamed(port, to, args.residency.ring, to); })
    return matrix.streamed(port, args.residency.values > 0 ? to : nullptr, args.residency.ring,
                           to + dictionary_bytes(args.residency, sizeof(typename M::Value)));
  else
    return matrix;
}

// The list of packets to read, a copy of it in fast memory behind the vectors. A barrier is to
// follow.
template <Port P, class M>
CPUFREE_KERNEL_FN const std::int32_t* resident_reads(P& port, const SolveArgs<M>& args,
                                                     const BlockShare<M>& share, std::byte* fast) {
  if (args.residency.reads == 0) return share.reads;
  Residency before = args.residency;
  before.reads = 0;
  auto* const to = reinterpret_cast<std::int32_t*>(
      fast + resident_vector_bytes(before, sizeof(typename M::Value)));
  for (std::int32_t k = port.lane(); k < share.read_count; k += port.lanes())
    to[k] = share.reads[k];
  return to;
}

// to[j] = from[j] for my rows, shared among the threads of the block.
template <Port P, class T>
CPUFREE_KERNEL_FN void copy_private(P& port, const T* from, T* to, std::int32_t rows) {
  if (from == nullptr || from == to) return;
  for (std::int32_t j = port.lane(); j < rows; j += port.lanes()) to[j] = from[j];
}

// Brings what the host gave (b, 1/d, x0) on chip. Ends with a barrier.
template <Port P, class M>
CPUFREE_KERNEL_FN void load_resident(P& port, const SolveArgs<M>& args, const BlockShare<M>& share,
                                     const BlockVectors<typename M::Value>& mine) {
  using T = typename M::Value;
  if (args.residency.vectors == 0) return;
  const auto load = [&](const T* all, const T* here) {
    if (all != nullptr)
      copy_private(port, all + share.first_private, const_cast<T*>(here), share.rows());
  };
  load(args.vectors.inverse_diagonal, mine.inverse_diagonal.data);
  load(args.vectors.b, mine.b.data);
  if (args.params.has_guess) load(args.vectors.x, mine.x.data);
  port.sync_block();
}

// Hands the answer back.
template <Port P, class M>
CPUFREE_KERNEL_FN void store_resident(P& port, const SolveArgs<M>& args, const BlockShare<M>& share,
                                      const BlockVectors<typename M::Value>& mine) {
  if (args.residency.vectors == 0) return;
  port.sync_block();
  copy_private(port, static_cast<const typename M::Value*>(mine.x.data),
               args.vectors.x + share.first_private, share.rows());
}

}  // namespace cpufree
