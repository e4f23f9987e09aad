// From a factor of a preconditioner to the slices of the blocks of a PE.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/formats/factor_slices.hpp"
#include "cpufree/problem/factors/factors.hpp"

namespace cpufree {

// One block's rows of a factor.
struct SlicedFactor {
  std::vector<FactorSlice> slice;
  std::vector<std::int32_t> row;
  std::vector<float> value;
  std::vector<std::uint16_t> narrow;
  std::vector<std::int32_t> wide;

  FactorSlices view() const {
    return {slice.data(),  row.data(),  value.data(),
            narrow.data(), wide.data(), static_cast<std::int32_t>(slice.size())};
  }
  double bytes() const;
};

// Where a PE's rows are among its private vectors: `place` of each row by the PE's number, the rows
// of each block, and where each block's places begin, from which its rows are counted.
struct PrivatePlaces {
  std::vector<std::int32_t> place;
  std::vector<std::vector<std::int32_t>> rows;
  std::vector<std::int64_t> first;
};

// By block, in slices of `width` rows.
std::vector<SlicedFactor> slice_factor(const SparseFactor& factor, const PrivatePlaces& places,
                                       int width);

// For each block the other blocks of its PE whose rows the factors read, or that read its rows: a
// symmetric list, as proof (ii) of device/channel.hpp has it.
std::vector<std::vector<std::int32_t>> factor_partners(const std::vector<SparseFactor>& factors,
                                                       const PrivatePlaces& places);

}  // namespace cpufree
