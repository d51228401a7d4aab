// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 bit for bit with cuRAND's host generator, which needs no GPU.
#include <curand.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "suture/rng/philox.hpp"

namespace {

// In the default order the words are blocks of 65536 subsequences in turn: block b has counter
// (b / 65536, 0, b % 65536, 0).
TEST(CurandHost, Words) {
  for (const std::uint64_t seed : {0ull, 1234ull, 0x0123456789ABCDEFull, ~0ull})
    for (const std::uint32_t offset : {0u, 6u, 1000003u}) {
      curandGenerator_t generator = nullptr;
      ASSERT_EQ(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10), CURAND_STATUS_SUCCESS);
      ASSERT_EQ(curandSetPseudoRandomGeneratorSeed(generator, seed), CURAND_STATUS_SUCCESS);
      ASSERT_EQ(curandSetGeneratorOffset(generator, offset), CURAND_STATUS_SUCCESS);
      std::vector<std::uint32_t> words(200000);
      ASSERT_EQ(curandGenerate(generator, words.data(), words.size()), CURAND_STATUS_SUCCESS);
      ASSERT_EQ(curandDestroyGenerator(generator), CURAND_STATUS_SUCCESS);
      const suture::philox_key key{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
      for (std::uint32_t i = 0; i < words.size(); ++i) {
        const std::uint32_t at = offset + i;
        const std::uint32_t block = at / 4;
        ASSERT_EQ(suture::philox4x32({{block / 65536, 0, block % 65536, 0}}, key)[at % 4], words[i])
            << seed << ' ' << offset << ' ' << i;
      }
    }
}

}  // namespace
