// SPDX-License-Identifier: Apache-2.0
// Stains of whole pictures against torchstain, and stains as a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <suture/suture.hpp>
#include <vector>

#include "common/rgb_image.hpp"
#include "common/stain_json.hpp"
#include "support/expect_says.hpp"
#include "support/stained_tile.hpp"

namespace {

using namespace suture;
using namespace suture::examples;
namespace fs = std::filesystem;

TEST(StainFiles, AFileKeepsEveryBit) {
  stain_reference stains;
  stains.stains[1][0] = 1 / 3.0;
  stains.max_concentration[1] = std::nextafter(1.25, 2);
  const fs::path file = fs::temp_directory_path() / ("stains_" + std::to_string(getpid()) + ".json");
  write_stains(file, stains);
  EXPECT_EQ(read_stains(file), stains);
  fs::remove(file);
}

TEST(StainFiles, BritishSpellingOfOldFilesIsRead) {
  const report old = report::parse(R"({"stains": {"haematoxylin": [0.6, 0.7, 0.4], "eosin": [0.1, 0.9, 0.2]},
                                       "max_concentration": {"haematoxylin": 1.5, "eosin": 1.25}})");
  const stain_reference stains = stains_from_json(old);
  EXPECT_EQ(stains.stains[1][0], 0.7);
  EXPECT_EQ(stains.stains[2][1], 0.2);
  EXPECT_EQ(stains.max_concentration[0], 1.5);
}

// A snippet of the page on operations: the stains of a slide, fitted in one program, are the source in another.
TEST(StainFiles, StoredStainsAreASource) {
  const fs::path file = fs::temp_directory_path() / ("slide_" + std::to_string(getpid()) + ".json");
  const std::vector<grid> grids{{.extents = {1, 40, 50}}, {.extents = {1, 30, 30}}};
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<view<const std::uint8_t>> tiles;
  for (std::size_t i = 0; i < grids.size(); ++i) pixels.push_back(support::stained_tile(grids[i], i));
  for (std::size_t i = 0; i < grids.size(); ++i)
    tiles.push_back(channels_last<const std::uint8_t>(pixels[i].data(), grids[i], 3));
  // [offline]
  const suture::fit_macenko how{.together = true};
  suture::stain_basis found;  // of some tiles of the slide
  suture::fit(suture::cpu{}, how, tiles, suture::everything{}, std::span(&found, 1));
  write_stains(file, suture::reference_of(found));
  // [/offline]
  // [training]
  const suture::stain_basis slide = suture::basis_of(read_stains(file), how);
  const auto pipeline = suture::macenko_normalize{.fitted = {&slide, 1}, .shared = true} | suture::random_hed_jitter{} |
                        suture::channel_normalize{} | suture::cast<suture::half>{};
  // [/training]
  fs::remove(file);
  const auto made = [&](const auto& chain) {
    std::vector<half> result(pixels[0].size());
    const std::vector in{tiles[0]};
    const std::vector out{contiguous(result.data(), grids[0], 3)};
    const std::vector<std::uint64_t> ids{5};
    run(cpu{}, plan(chain, in, settings{.sample_ids = ids}), image(in, out));
    std::vector<std::uint16_t> bits;
    for (const half x : result) bits.push_back(std::bit_cast<std::uint16_t>(x));
    return bits;
  };
  EXPECT_EQ(made(pipeline), made(macenko_normalize{.fitted = {&found, 1}, .shared = true} | random_hed_jitter{} |
                                 channel_normalize{} | cast<half>{}));
}

TEST(StainFiles, RefusesDamagedFiles) {
  const report good = stains_to_json({});
  EXPECT_EQ(stains_from_json(good), stain_reference{});
  const auto refused = [&](const char* words, const auto& damage) {
    report bad = good;
    damage(bad);
    EXPECT_SAYS(stains_from_json(bad), words);
  };
  refused("eosin", [](report& r) { r["stains"].erase("eosin"); });
  refused("hematoxylin has 4 numbers", [](report& r) { r["stains"]["hematoxylin"].push_back(1); });
  refused("cannot be inverted", [](report& r) { r["stains"]["eosin"] = r["stains"]["hematoxylin"]; });
  refused("no length", [](report& r) { r["stains"]["eosin"] = {0, 0, 0}; });
  refused("type must be number", [](report& r) { r["max_concentration"]["eosin"] = "much"; });
  refused("maximum concentration -1", [](report& r) { r["max_concentration"]["eosin"] = -1; });
  EXPECT_SAYS(read_stains("/no such folder/s.json"), "/no such folder/s.json: cannot be read");
  EXPECT_SAYS(write_stains("/no such folder/s.json", {}), "cannot be written");
  const fs::path file = fs::temp_directory_path() / ("deep_" + std::to_string(getpid()) + ".json");
  for (const std::size_t levels : {65U, 30'000U, 1'000'000U}) {
    std::ofstream(file) << "{\"stains\": " << std::string(levels, '[') << std::string(levels, ']')
                        << ", \"max_concentration\": 1, \"more\": 2}";
    EXPECT_SAYS(read_stains(file),
                "suture: stains: " + file.string() + ": lists and objects are nested more than 64 levels deep");
  }
  fs::remove(file);
  EXPECT_SAYS(read_stains("/dev/zero"), "/dev/zero: is a device, not a file");
}

}  // namespace
