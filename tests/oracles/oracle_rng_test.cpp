// SPDX-License-Identifier: Apache-2.0
// Philox4x32 against the words of Random123 and of cuRAND's host generator.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/oracle.hpp"
#include "suture/rng/philox.hpp"

namespace {

using suture::philox4x32;
using suture::philox_block;

std::uint32_t hex(const nlohmann::json& word) {
  return static_cast<std::uint32_t>(std::stoul(word.get<std::string>(), nullptr, 16));
}

SUTURE_ORACLE_TEST(Philox, Random123Vectors,
                   support::calls_one_of({"Random123 known answers",
                                          "Random123 headers, arbitrary counters and keys"})) {
  int compared = 0;
  for (const nlohmann::json& known : c.expected) {
    const int rounds = known.at("rounds");
    if (known.at("generator") != "philox4x32" || (rounds != 7 && rounds != 10)) continue;
    const auto& at = known.at("counter");
    const auto& k = known.at("key");
    const auto& e = known.at("expected");
    const philox_block counter{{hex(at[0]), hex(at[1]), hex(at[2]), hex(at[3])}};
    const suture::philox_key key{{hex(k[0]), hex(k[1])}};
    const philox_block got = rounds == 7 ? philox4x32<7>(counter, key) : philox4x32(counter, key);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], hex(e[i]));
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

SUTURE_ORACLE_TEST(Philox, CurandVectors,
                   support::calls("curandGenerate* host generator CURAND_RNG_PSEUDO_PHILOX4_32_10, legacy ordering")) {
  const auto seed = c.params.at("seed").get<std::uint64_t>();
  const auto first = c.params.at("offset").get<std::uint32_t>() / 4;
  const auto expected = c.output<std::uint32_t>("u32").values;
  ASSERT_FALSE(expected.empty());
  for (std::uint32_t i = 0; i < expected.size(); ++i) {
    const philox_block block = philox4x32({{0, 0, first + i / 4, 0}},
                                          {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
    ASSERT_EQ(block[i % 4], expected[i]) << i;
  }
}

}  // namespace
