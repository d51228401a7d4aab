// SPDX-License-Identifier: Apache-2.0
// A 64-bit digest of an output: the bits and the index of every element are mixed, and the results summed. The digest
// does not depend on the order of evaluation, and digests of samples combine to the same number however a batch is
// split.
#pragma once

#include <cstring>

#include "view.hpp"

namespace suture {

// SplitMix64's finalizer (Steele, Lea, Flood 2014): a bijection of 64 bits.
SUTURE_FN std::uint64_t mix64(std::uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

SUTURE_FN std::uint64_t digest_term(std::uint64_t index, std::uint64_t bits) {
  return mix64(mix64(index + 0x9e3779b97f4a7c15ull) ^ bits);
}

// Returns the digest of one sample, which lies in host memory as a whole. Errors: a view of a box.
template <class T>
std::uint64_t digest(const view<T>& v) {
  check(v, {"digest"});
  std::uint64_t sum = 0, index = 0;
  for (std::int64_t c = 0; c < v.channels; ++c)
    for (std::int64_t z = 0; z < v.grid.extents[0]; ++z)
      for (std::int64_t y = 0; y < v.grid.extents[1]; ++y)
        for (std::int64_t x = 0; x < v.grid.extents[2]; ++x) {
          std::uint64_t bits = 0;
          std::memcpy(&bits, v.data + c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2],
                      sizeof(T));
          sum += digest_term(index++, bits);
        }
  return mix64(sum);
}

// Adds a sample's digest to that of a set of samples; the order of adding does not matter.
inline std::uint64_t combine_digest(std::uint64_t set, std::uint64_t sample_id, std::uint64_t sample) {
  return set + digest_term(sample_id, sample);
}

}  // namespace suture
