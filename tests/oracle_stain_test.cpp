// SPDX-License-Identifier: Apache-2.0
// Stain fits and normalization against torchstain, TIAToolbox, cuCIM and MONAI, through whole pipelines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <suture/fit/macenko.hpp>
#include <suture/fit/macenko_modes.hpp>
#include <suture/suture.hpp>

#include "support/oracle.hpp"

namespace {

using namespace suture;
using nlohmann::json;
using support::oracle_case;

grid grid_of(const support::array<std::uint8_t>& rgb) { return {.extents = {1, rgb.shape[0], rgb.shape[1]}}; }

stain_basis fitted(const fit_macenko& how, const support::array<std::uint8_t>& rgb) {
  stain_basis b;
  fit(cpu{}, how, channels_last(rgb.values.data(), grid_of(rgb), 3), everything{}, std::span(&b, 1));
  EXPECT_EQ(b.status, stain_status::ok);
  return b;
}

std::vector<std::uint8_t> normalized(const macenko_normalize& how, const support::array<std::uint8_t>& rgb) {
  const std::vector in{channels_last(rgb.values.data(), grid_of(rgb), 3)};
  std::vector<std::uint8_t> values(rgb.values.size());
  const std::vector out{channels_last(values.data(), grid_of(rgb), 3)};
  run(cpu{}, plan(how | cast<std::uint8_t>{}, in), image(in, out));
  return values;
}

// Rows red, green, blue; columns hematoxylin, eosin; or transposed.
void expect_stains(const stain_basis& b, const json& expected, bool transposed = false) {
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(b.stains.m[c][k], (transposed ? expected.at(k).at(c) : expected.at(c).at(k)).get<double>(), 5e-6);
}
void expect_concentrations(const stain_basis& b, const json& expected) {
  for (std::size_t k = 0; k < 2; ++k) {
    const double value = expected.at(k);
    EXPECT_NEAR(b.max_concentration[k], value, 2e-5 * value);
  }
}

// Never off by more than one level, and off at all in one value of a thousand.
void expect_levels(const std::vector<std::uint8_t>& actual, const std::vector<std::uint8_t>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    differ += actual[i] != expected[i] ? 1 : 0;
    ASSERT_LE(std::abs(actual[i] - expected[i]), 1) << "value " << i;
  }
  EXPECT_LE(differ, actual.size() / 1000);
}

const std::string pairs[] = {"a_to_b", "c_to_headneck", "tile_to_skin"};

TEST(OracleStain, Torchstain) {
  SUTURE_NEEDS_ORACLES("stain");
  for (const std::string& pair : pairs) {
    SCOPED_TRACE(pair);
    const oracle_case c = support::find_case("stain", pair + "_macenko_torchstain");
    macenko_mode mode = macenko::torchstain;
    mode.fit.density.white = c.params.at("Io");
    mode.fit.alpha = c.params.at("alpha");
    mode.fit.least_density = c.params.at("beta");
    const auto source = c.input<std::uint8_t>("source");
    const stain_basis from = fitted(mode.fit, source), to = fitted(mode.fit, c.input<std::uint8_t>("target"));
    EXPECT_EQ(from.tally.count, c.expected.at("n_selected_source").get<std::uint64_t>());
    expect_stains(from, c.expected.at("HE_source"));
    expect_stains(to, c.expected.at("HE_target"));
    expect_concentrations(from, c.expected.at("maxC_source"));
    expect_concentrations(to, c.expected.at("maxC_target"));
    expect_levels(normalized(mode.normalize({&from, 1}, reference_of(to)), source),
                  c.output<std::uint8_t>("normalized").values);
    const oracle_case plain = support::find_case("stain", pair + "_macenko_torchstain_default_ref");
    expect_levels(normalized(mode.normalize({&from, 1}), source), plain.output<std::uint8_t>("normalized").values);
  }
}

TEST(OracleStain, Monai) {
  SUTURE_NEEDS_ORACLES("stain");
  for (const std::string& pair : pairs) {
    SCOPED_TRACE(pair);
    const oracle_case c = support::find_case("stain", pair + "_macenko_monai");
    const auto source = c.input<std::uint8_t>("source");
    const stain_basis b = fitted(macenko::monai.fit, source);
    expect_stains(b, c.expected.at("HE_source"));
    expect_levels(normalized(macenko::monai.normalize({&b, 1}), source), c.output<std::uint8_t>("normalized").values);
  }
}

TEST(OracleStain, Cucim) {
  SUTURE_NEEDS_ORACLES("stain");
  for (const std::string& pair : pairs) {
    SCOPED_TRACE(pair);
    const oracle_case c = support::find_case("stain", pair + "_pca_cucim");
    const auto source = c.input<std::uint8_t>("source");
    const stain_basis b = fitted(macenko::cucim.fit, source);
    expect_stains(b, c.expected.at("stain_coeff_source"));
    expect_stains(fitted(macenko::cucim.fit, c.input<std::uint8_t>("target")), c.expected.at("stain_coeff_target"));
    expect_levels(normalized(macenko::cucim.normalize({&b, 1}), source), c.output<std::uint8_t>("normalized").values);
  }
}

TEST(OracleStain, Tiatoolbox) {
  SUTURE_NEEDS_ORACLES("stain");
  for (const std::string& pair : pairs) {
    SCOPED_TRACE(pair);
    const oracle_case c = support::find_case("stain", pair + "_macenko_tiatoolbox");
    const macenko_mode& mode = macenko::tiatoolbox;
    const auto source = c.input<std::uint8_t>("source");
    const stain_basis from = fitted(mode.fit, source), to = fitted(mode.fit, c.input<std::uint8_t>("target"));
    expect_stains(from, c.expected.at("stain_matrix_source_rows"), true);
    expect_stains(to, c.expected.at("stain_matrix_target_rows"), true);
    expect_concentrations(to, c.expected.at("maxC_target"));
    expect_levels(normalized(mode.normalize({&from, 1}, reference_of(to)), source),
                  c.output<std::uint8_t>("normalized").values);
    // The mask of stained pixels, one by one.
    const oracle_case m = support::find_case("stain", pair + "_tissue_mask_tiatoolbox");
    const auto mask = m.output<std::uint8_t>("mask");
    std::uint64_t stained = 0;
    for (const std::uint8_t x : mask.values) stained += x != 0 ? 1 : 0;
    EXPECT_EQ(from.tally.count, stained);
  }
}

// TIAToolbox factorizes without holding the stains positive: one of its two has negative densities and is no color of
// a stain. The other is compared, in direction.
TEST(OracleStain, Vahadane) {
  SUTURE_NEEDS_ORACLES("stain");
  for (const std::string& pair : pairs) {
    const oracle_case c = support::find_case("stain", pair + "_vahadane_tiatoolbox");
    fit_macenko how = macenko::vahadane.fit;
    how.stained = stained_rule::stretched_luminosity;
    how.luminosity = c.params.at("luminosity_threshold");
    how.sparsity = c.params.at("regularizer");
    for (const std::string role : {"source", "target"}) {
      SCOPED_TRACE(pair + " " + role);
      const stain_basis b = fitted(how, c.input<std::uint8_t>(role));
      int compared = 0;
      for (const json& row : c.expected.at("stain_matrix_" + role + "_rows")) {
        const std::vector<double> expected = row;
        if (*std::min_element(expected.begin(), expected.end()) < 0) continue;
        double nearest = 90;
        for (int k = 0; k < 2; ++k) {
          double cosine = 0;
          for (std::size_t i = 0; i < 3; ++i) cosine += b.stains[static_cast<int>(i)][k] * expected[i];
          nearest = std::min(nearest, std::acos(std::min(cosine, 1.0)) * 180 / 3.141592653589793);
        }
        EXPECT_LT(nearest, 2.5);
        ++compared;
      }
      EXPECT_EQ(compared, 1);
    }
  }
}

}  // namespace
