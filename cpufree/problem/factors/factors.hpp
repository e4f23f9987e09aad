// Factors of a preconditioner that is known entry by entry: M = S F_2 F_1 S with F_2 the transpose
// of F_1; S is the diagonal of OwnRows.
//
// Every PE makes those of its own diagonal block, so M is block diagonal over the PEs. Entries are
// rounded to single precision, in F_1 and F_2 alike: M is symmetric to the last bit, and needs no
// more digits.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/base/pages.hpp"
#include "cpufree/problem/factors/own_rows.hpp"

namespace cpufree {

// A sparse matrix of a PE's own rows, by the PE's numbers.
struct SparseFactor {
  PageVector<std::int64_t> row_ptr;
  PageVector<std::int32_t> col;
  PageVector<float> val;
};

struct Factors {
  std::vector<SparseFactor> factors;  // in the order in which they are applied
  std::vector<double> scale;          // S, by the PE's numbers
  std::int64_t replaced = 0;          // rows that have their diagonal alone
  std::int64_t left_out = 0;          // entries of a factor that is given, between PEs

  std::int64_t entries() const {
    std::int64_t sum = 0;
    for (const SparseFactor& factor : factors) sum += factor.row_ptr.back();
    return sum;
  }
};

SparseFactor transpose(const SparseFactor& g);

// F_1 = G S^-1 as it is given, in the original numbers, as far as it couples own rows with one
// another; F_2 = its transpose. Throws InvalidInput where a row or a column of that has no entries.
Factors given_factor(const OwnRows& own, const CsrView<double>& g);

// Of a matrix with a diagonal of ones: a row with a smaller pivot is not positive definite.
inline constexpr double kLeastPivot = 1e-14;

// What a factorised sparse approximate inverse is to look like. Sizes of entries are those of S A
// S.
struct FsaiOptions {
  int level = 1;            // 1: the pattern of A; 2: that of A^2, thinned
  double least = 0.0;       // of A, for the pattern
  double least_path = 0.0;  // level 2: of the product of two entries of A
  double least_kept = 0.0;  // of a row of G, relative to its diagonal
  std::int32_t most = 64;   // entries in a row of G
};
FsaiOptions fsai_options(int level);

// F_1 = G, F_2 = its transpose. G is lower triangular, in the original order, has a pattern that is
// given beforehand, and of all those the one with the least || I - G L ||_F, L the Cholesky factor
// of S A S, whose G (S A S) G^T has a diagonal of ones (Kolotilina & Yeremin 1993, "Factorized
// sparse approximate inverse preconditionings I. Theory", SIAM J. Matrix Anal. Appl. 14(1)). Each
// row is found by itself, from a Cholesky factorization of the part of S A S that its pattern
// names; where that is not positive definite, the row has its diagonal alone.
Factors approximate_inverse(const OwnRows& own, const FsaiOptions& options);

}  // namespace cpufree
