// Digests that tell arrays apart without keeping a copy. They are not cryptographic.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpufree/base/parallel.hpp"

namespace cpufree {

using Digest = std::array<std::uint64_t, 2>;

namespace digests {
constexpr std::size_t kLanes = 8;
constexpr std::size_t kStep = kLanes * sizeof(std::uint64_t);
constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes, for a thread

// One to one in the state, and in the word: arrays that differ in one word have other digests.
inline std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  return std::rotl((state ^ word) * 0x9e3779b97f4a7c15U, 31);
}

// Of one piece. Lanes are independent of one another, so that a core has several under way.
inline Digest of_piece(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, kLanes> state{};
  for (std::size_t l = 0; l < kLanes; ++l) state[l] = mix(bytes.size(), l + 1);
  std::array<std::uint64_t, kLanes> words{};
  std::size_t k = 0;
  const auto take = [&](std::size_t count) {
    std::memcpy(words.data(), bytes.data() + k, count);
    for (std::size_t l = 0; l < kLanes; ++l) state[l] = mix(state[l], words[l]);
  };
  for (; k + kStep <= bytes.size(); k += kStep) take(kStep);
  words = {};
  if (k < bytes.size()) take(bytes.size() - k);
  Digest digest{1, 2};
  for (std::size_t l = 0; l < kLanes; ++l) {
    digest[0] = mix(digest[0], state[l]);
    digest[1] = mix(digest[1] + digest[0], std::rotl(state[l], 17));
  }
  return digest;
}
}  // namespace digests

// On all cores; the same on every machine of one byte order.
inline Digest digest_of(std::span<const std::byte> bytes) {
  const std::size_t pieces = bytes.size() / digests::kPiece + 1;
  std::vector<Digest> of_pieces(pieces);
  in_parallel(static_cast<int>(pieces), [&](int k) {
    const std::size_t first = static_cast<std::size_t>(k) * digests::kPiece;
    of_pieces[static_cast<std::size_t>(k)] =
        digests::of_piece(bytes.subspan(first, std::min(digests::kPiece, bytes.size() - first)));
  });
  if (pieces == 1) return of_pieces[0];
  return digests::of_piece(std::as_bytes(std::span(of_pieces)));
}

}  // namespace cpufree
