// SPDX-License-Identifier: Apache-2.0
// Stain normalization: tiles are their pixels one by one, and what jitter makes of its logarithms or of its colors.
#include <gtest/gtest.h>

#include <suture/fit/macenko_modes.hpp>
#include <suture/suture.hpp>
#include <vector>

#include "support/expect_says.hpp"
#include "support/fitted_tile.hpp"

namespace {

using namespace suture;
using support::fit_tile;
using support::normalized;

// A pipeline of the page on operations.
TEST(MacenkoNormalize, FitsABatchAndNormalisesIt) {
  const std::vector<grid> grids{{.extents = {1, 60, 50}}, {.extents = {1, 30, 90}}, {.extents = {1, 20, 20}}};
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<std::vector<half>> results;
  std::vector<view<const std::uint8_t>> tiles;
  std::vector<view<half>> outputs;
  for (std::size_t i = 0; i < 3; ++i) {
    pixels.push_back(i < 2 ? support::stained_tile(grids[i], i) : std::vector<std::uint8_t>(1200, 251));
    results.emplace_back(pixels[i].size());
    tiles.push_back(channels_last<const std::uint8_t>(pixels[i].data(), grids[i], 3));
    outputs.push_back(contiguous(results[i].data(), grids[i], 3));
  }
  // [stains]
  std::vector<suture::stain_basis> fitted(tiles.size());
  suture::fit(suture::cpu{}, suture::fit_macenko{}, tiles, suture::everything{}, std::span(fitted));
  const auto pipeline =
      suture::macenko_normalize{.fitted = fitted} | suture::rescale{.slope = 1 / 255.0f} | suture::cast<suture::half>{};
  suture::run(suture::cpu{}, suture::plan(pipeline, tiles), suture::image(tiles, outputs));
  // [/stains]
  EXPECT_EQ(fitted[0].status, stain_status::ok);
  EXPECT_EQ(fitted[2].status, stain_status::too_little_tissue);
  const float unchanged = storage<half>::load(results[2][7]);
  EXPECT_NEAR(unchanged, 251 / 255.0f, 1e-3f);
  const auto& p = pixels[0];
  const rgb expected =
      normalized({.fitted = fitted}, {{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])}});
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(storage<half>::load(results[0][c * 3000]), expected.c[c] / 255, 1e-3f);
}

// The same, with jitter and the statistics of ImageNet; and what happens to values that are divided by 255 twice.
TEST(MacenkoNormalize, IntoTheStatisticsOfImageNet) {
  const std::vector<grid> grids(2, grid{.extents = {1, 30, 40}});
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<view<const std::uint8_t>> tiles;
  for (std::size_t i = 0; i < 2; ++i) pixels.push_back(support::stained_tile(grids[i], i));
  for (std::size_t i = 0; i < 2; ++i) tiles.push_back(channels_last<const std::uint8_t>(pixels[i].data(), grids[i], 3));
  std::vector<stain_basis> fitted(tiles.size());
  fit(cpu{}, fit_macenko{}, tiles, everything{}, std::span(fitted));
  const auto train = suture::macenko_normalize{.fitted = fitted} | suture::random_hed_jitter{} | suture::random_flip{} |
                     suture::channel_normalize{} | suture::cast<suture::half>{};
  const std::vector<std::uint64_t> ids{4, 5};
  const auto made = [&](const auto& chain) {
    std::vector<std::vector<half>> results(2, std::vector<half>(pixels[0].size()));
    const std::vector out{contiguous(results[0].data(), grids[0], 3), contiguous(results[1].data(), grids[1], 3)};
    run(cpu{}, plan(chain, tiles, settings{.sample_ids = ids, .evaluation = true}), image(tiles, out));
    return results[0];
  };
  const auto values = made(train);
  const rgb color = normalized({.fitted = fitted}, {{static_cast<float>(pixels[0][0]), static_cast<float>(pixels[0][1]),
                                                     static_cast<float>(pixels[0][2])}});
  const double mean[] = {.485, .456, .406}, deviation[] = {.229, .224, .225}, dark[] = {-2.1, -2.0, -1.8};
  const auto twice =
      made(macenko_normalize{.fitted = fitted} | rescale{.slope = 1 / 255.0f} | channel_normalize{} | cast<half>{});
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(storage<half>::load(values[1200 * c]), (static_cast<double>(color.c[c]) / 255 - mean[c]) / deviation[c],
                2e-3);
    EXPECT_NEAR(storage<half>::load(twice[1200 * c]), dark[c], .05);
  }
}

// Tables, whole strips, powers of e in a short range: the colors are those of pixels one by one.
TEST(MacenkoNormalize, RowsOfBytesAreTheirPixels) {
  const auto tile = support::stained_tile({.extents = {1, 1, 300}}, 5, .6);
  stain_basis fitted = fit_tile(macenko::torchstain.fit, tile);
  ASSERT_EQ(fitted.status, stain_status::ok);
  for (const std::int64_t n : {1, 31, 32, 33, 255, 257, 300})
    for (const double reach : {1.0, 1e4})  // the other one leaves the short range
      for (const macenko_mode& m : {macenko::standard, macenko::torchstain, macenko::matlab, macenko::henorm}) {
        fitted.unchanged = n == 33 ? 1 : 0;
        const macenko_normalize how =
            m.normalize({&fitted, 1}, {.max_concentration = {1.9705 * reach, 1.0308 * reach}});
        const grid g{.extents = {1, 1, n}};
        std::vector<std::uint8_t> result(static_cast<std::size_t>(3 * n));
        const std::vector in{channels_last(tile.data(), g, 3)};
        const std::vector out{channels_last(result.data(), g, 3)};
        run(cpu{}, plan(how | cast<std::uint8_t>{}, in), image(in, out));
        for (std::size_t i = 0; i < result.size(); i += 3) {
          const rgb one = normalized(
              how, {{static_cast<float>(tile[i]), static_cast<float>(tile[i + 1]), static_cast<float>(tile[i + 2])}});
          for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(result[i + c], storage<std::uint8_t>::store(one.c[c])) << i;
        }
      }
}

// Right of it, hed_jitter takes base-2 logarithms in place of colors: the same but for how these were rounded, and
// exactly the same where the colors are needed.
TEST(MacenkoNormalize, JitterTakesLogarithmsOrColors) {
  const grid g{.extents = {1, 9, 37}};
  const auto bytes = support::stained_tile(g, 5, .6);
  for (const bool of_unit_scale : {false, true})
    for (const macenko_mode& m : {macenko::standard, macenko::staintools, macenko::torchstain, macenko::vahadane})
      for (const std::uint32_t unchanged : {0u, 1u})
        for (const hed_units units : {hed_units::modern, hed_units::tellez_plus2})
          for (const float white : {255.0f, 200.0f}) {
            fit_macenko how = m.fit;
            how.full_scale = of_unit_scale ? 1 : 255;
            std::vector<float> tile, separate(bytes.size()), joined(bytes.size()), between(bytes.size());
            for (const auto v : bytes) tile.push_back(of_unit_scale ? static_cast<float>(v) / 255 : v);
            const std::vector in{channels_last<const float>(tile.data(), g, 3)};
            std::vector<stain_basis> fitted(1);
            fit(cpu{}, how, in, everything{}, std::span(fitted));
            fitted[0].unchanged = unchanged;
            const auto normalize = m.normalize(fitted);
            const hed_jitter jitter{.alpha = {1.1f, .9f, 1.2f},
                                    .beta = {.01f, -.01f, .02f},
                                    .units = units,
                                    .white = of_unit_scale ? white / 255 : white};
            const auto make = [&](const auto& chain, const std::vector<float>& from, std::vector<float>& to) {
              const std::vector source{channels_last<const float>(from.data(), g, 3)};
              run(cpu{}, plan(chain, source), image(source, std::vector{channels_last(to.data(), g, 3)}));
            };
            make(normalize, tile, between);
            make(jitter, between, separate);
            make(normalize | jitter, tile, joined);
            const bool hands_on = m.rounding == stain_rounding::unrounded && units == hed_units::modern;
            const float tolerance = hands_on ? (of_unit_scale ? 1 : 255) * 3e-6f : 0;
            for (std::size_t i = 0; i < tile.size(); ++i) ASSERT_NEAR(joined[i], separate[i], tolerance) << i;
            if (of_unit_scale) continue;
            std::vector<float> looked_up(bytes.size());
            const std::vector levels{channels_last<const std::uint8_t>(bytes.data(), g, 3)};
            run(cpu{}, plan(normalize | jitter, levels),
                image(levels, std::vector{channels_last(looked_up.data(), g, 3)}));
            ASSERT_EQ(looked_up, joined);
          }
}

// One sample's jitter says nothing of that of the next.
TEST(MacenkoNormalize, JitterThatMayBeOff) {
  const grid g{.extents = {1, 5, 33}};
  const auto bytes = support::stained_tile(g, 5, .6);
  const stain_basis fitted = fit_tile({}, bytes);
  const auto chain = macenko_normalize{.fitted = {&fitted, 1}, .shared = true} | random_hed_jitter{.probability = .5f};
  const auto made = [&](const std::vector<std::uint64_t>& ids) {
    const std::vector in(ids.size(), channels_last<const std::uint8_t>(bytes.data(), g, 3));
    std::vector<std::vector<float>> results(ids.size(), std::vector<float>(bytes.size()));
    std::vector<view<float>> out;
    for (auto& r : results) out.push_back(channels_last(r.data(), g, 3));
    run(cpu{}, plan(chain, in, settings{.seed = 3, .sample_ids = ids}), image(in, out));
    return results;
  };
  std::vector<std::uint64_t> ids(12);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const auto together = made(ids);
  for (const std::uint64_t id : ids) EXPECT_EQ(together[id], made({id})[0]) << id;
}

// Results that no fit has filled must not pass for tiles that keep their colors.
TEST(MacenkoNormalize, RefusesStainsThatWereNeverFitted) {
  EXPECT_EQ(status_name(stain_basis{}.status), "not_fitted");
  EXPECT_SAYS(reference_of(stain_basis{}), "not_fitted");
  const grid g{.extents = {1, 20, 20}};
  const auto bytes = support::stained_tile(g, 5);
  std::vector<stain_basis> fitted(3);
  fitted[0] = fitted[2] = fit_tile({}, bytes, g);
  const std::vector in(3, channels_last<const std::uint8_t>(bytes.data(), g, 3));
  const std::vector<std::uint64_t> ids{0, 1, 2};
  std::vector<std::vector<std::uint8_t>> results(3, std::vector<std::uint8_t>(bytes.size(), 7));
  std::vector<view<std::uint8_t>> out;
  for (auto& r : results) out.push_back(channels_last(r.data(), g, 3));
  const auto made = [&](const auto& op, bool evaluation = false) {
    run(cpu{}, plan(op | cast<std::uint8_t>{}, in, settings{.sample_ids = ids, .evaluation = evaluation}),
        image(in, out));
  };
  EXPECT_SAYS(made(macenko_normalize{.fitted = fitted}), "macenko_normalize: sample 1: the stains were never");
  EXPECT_SAYS(made(random_flip{} | macenko_normalize{.fitted = fitted}), "macenko_normalize: sample 1: ");
  EXPECT_SAYS(made(macenko_normalize{.fitted = {&fitted[1], 1}, .shared = true}), "macenko_normalize: sample 0: ");
  EXPECT_SAYS(made(stain_jitter{.fitted = fitted}), "stain_jitter: sample 1: ");
  EXPECT_SAYS(made(random_stain_jitter{.fitted = fitted}), "random_stain_jitter: sample 1: ");
  for (const auto& r : results) EXPECT_EQ(r, std::vector<std::uint8_t>(bytes.size(), 7));  // before anything is written
  made(random_stain_jitter{.fitted = fitted}, true);                                       // nobody looks
  EXPECT_EQ(results[1], bytes);
  // It is read when the pipeline runs, so a fit may come behind the plan.
  const auto planned = plan(macenko_normalize{.fitted = fitted} | cast<std::uint8_t>{}, in);
  fitted[1] = fitted[0];
  run(cpu{}, planned, image(in, out));
  EXPECT_EQ(results[1], results[0]);
}

// One result per tile, or one for all where that is said.
TEST(MacenkoNormalize, AsksForTheResultOfEveryTile) {
  const std::vector<grid> tiles(4, grid{.extents = {1, 4, 4}});
  const std::vector<stain_basis> fitted(4);
  const stain_basis array[4];
  const stain_basis* const pointer = fitted.data();
  const auto said_of = [&](const macenko_normalize& how) { return message([&] { plan(how | cast<float>{}, tiles); }); };
  EXPECT_EQ(said_of({.fitted = fitted}), "no error");
  EXPECT_EQ(said_of({.fitted = array}), "no error");
  EXPECT_EQ(said_of({.fitted = std::span(pointer, 4)}), "no error");
  EXPECT_EQ(said_of({.fitted = {pointer, 1}, .shared = true}), "no error");
  EXPECT_EQ(said_of(macenko::torchstain.normalize(fitted)), "no error");
  EXPECT_EQ(said_of(macenko::torchstain.normalize({pointer, 1}, {}, true)), "no error");
  EXPECT_EQ(said_of({.fitted = {pointer, 1}}),
            "suture: macenko_normalize: sample 1: no fitted result for it, 1 given (shared = true uses one for all)");
  EXPECT_EQ(said_of({.fitted = {pointer, 3}}), "suture: macenko_normalize: sample 3: no fitted result for it, 3 given");
  EXPECT_EQ(said_of({.fitted = fitted, .shared = true}),
            "suture: macenko_normalize: sample 0: 4 fitted results given, shared uses one for all");
  EXPECT_EQ(said_of({.fitted = {}}), "suture: macenko_normalize: sample 0: no fitted results given");
  EXPECT_EQ(said_of({.fitted = std::vector<stain_basis>{}, .shared = true}),
            "suture: macenko_normalize: sample 0: no fitted results given");
  EXPECT_EQ(said_of({.fitted = std::span<const stain_basis>(static_cast<const stain_basis*>(nullptr), 4)}),
            "suture: macenko_normalize: sample 0: null pointer to the fitted results");
}

TEST(MacenkoNormalize, RefusesBadInput) {
  const stain_basis b;
  EXPECT_SAYS((macenko_normalize{.fitted = {}}.prepare({"macenko_normalize", 2})), "sample 2: no fitted results given");
  EXPECT_SAYS((macenko_normalize{.fitted = {&b, 1}, .over = 300}.prepare({"m"})), "over 300");
  EXPECT_SAYS(
      (macenko_normalize{.fitted = {&b, 1}, .reference = {{{{0, .6}, {0, .7}, {0, .3}}}, {1, 1}}}.prepare({"m"})),
      "no length");
}

}  // namespace
