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

TEST(Philox, Random123Vectors) {
  SUTURE_NEEDS_ORACLES("rng");
  int compared = 0;
  for (const char* name : {"published_kat", "random_kat"})
    for (const nlohmann::json& known : support::find_case("rng", name).expected) {
      if (known.at("generator") != "philox4x32") continue;
      const auto& c = known.at("counter");
      const auto& k = known.at("key");
      const auto& e = known.at("expected");
      const philox_block counter{{hex(c[0]), hex(c[1]), hex(c[2]), hex(c[3])}};
      const suture::philox_key key{{hex(k[0]), hex(k[1])}};
      const int rounds = known.at("rounds").get<int>();
      ASSERT_TRUE(rounds == 7 || rounds == 10);
      const philox_block got = rounds == 7 ? philox4x32<7>(counter, key) : philox4x32(counter, key);
      for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], hex(e[i]));
      ++compared;
    }
  EXPECT_GE(compared, 20);
}

TEST(Philox, CurandVectors) {
  SUTURE_NEEDS_ORACLES("rng");
  for (const char* name : {"curand_philox_0", "curand_philox_1"}) {
    const support::oracle_case known = support::find_case("rng", name);
    const auto seed = known.params.at("seed").get<std::uint64_t>();
    const auto first = known.params.at("offset").get<std::uint32_t>() / 4;
    const auto expected = known.output<std::uint32_t>("u32").values;
    ASSERT_GE(expected.size(), 2048u);
    for (std::uint32_t i = 0; i < expected.size(); ++i) {
      const philox_block block = philox4x32(
          {{0, 0, first + i / 4, 0}}, {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
      ASSERT_EQ(block[i % 4], expected[i]) << name << ' ' << i;
    }
  }
}

}  // namespace
