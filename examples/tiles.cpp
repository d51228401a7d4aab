// SPDX-License-Identifier: Apache-2.0
// Tiles of a stained slide become a batch for training: the stains of the slide are fitted once, tiles are turned and
// flipped, their stains replaced by those of a reference and varied, and colors normalized. It needs a compiler alone:
//   c++ -std=c++20 -O3 -march=native -mtune=generic -fno-math-errno -fopenmp -Iinclude examples/tiles.cpp -o tiles && ./tiles
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <suture/suture.hpp>
#include <vector>

namespace {

constexpr std::int64_t read_size = 384, size = 256;  // pixels of a tile as it is read and as it is stored
constexpr double mpp = .5;                           // micrometers per pixel

// A made-up tile of a slide stained with hematoxylin and eosin: nuclei in pink tissue. Red, green and blue lie side by
// side, as image files have them.
std::vector<std::uint8_t> made_up_tile(int seed) {
  const double hematoxylin[3] = {.56, .72, .41}, eosin[3] = {.22, .80, .56};  // optical density of one unit of stain
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < read_size; ++y)
    for (std::int64_t x = 0; x < read_size; ++x) {
      const double u = static_cast<double>(x + 37 * seed) / 9, v = static_cast<double>(y + 53 * seed) / 9;
      const bool nucleus = std::sin(u) * std::sin(v) > .7;
      const double h = nucleus ? 1.2 : .02, e = nucleus ? .05 : 1 + .3 * std::sin(u / 5 + v / 7);
      for (int c = 0; c < 3; ++c)
        pixels.push_back(static_cast<std::uint8_t>(240 * std::exp(-h * hematoxylin[c] - e * eosin[c])));
    }
  return pixels;
}

}  // namespace

int main() try {
  if (const std::string advice = suture::build_advice(); !advice.empty()) std::fprintf(stderr, "%s\n", advice.c_str());

  // A tile is a volume of one slice. Its spacing is in millimeters, (z, y, x).
  const suture::grid grid{.extents = {1, read_size, read_size}, .spacing = {1, mpp / 1000, mpp / 1000}};
  const std::vector<std::uint64_t> ids{0, 1, 2, 3};  // the place of each tile in the data set
  std::vector<std::vector<std::uint8_t>> memory;
  std::vector<suture::view<const std::uint8_t>> tiles;
  for (const std::uint64_t id : ids) {
    memory.push_back(made_up_tile(static_cast<int>(id)));
    tiles.push_back(suture::channels_last<const std::uint8_t>(memory.back().data(), grid, 3));
  }

  // One basis of stains for the slide, from all of its tiles.
  suture::stain_basis slide;
  suture::fit(suture::cpu{}, suture::fit_macenko{.together = true}, tiles, suture::everything{}, std::span(&slide, 1));
  std::printf("stains of the slide: %.1f degrees apart\n", slide.angle());

  const auto train =
      suture::random_affine{.rotate_deg = {180, 0, 0}, .scale = {.9f, 1.1f}} | suture::random_flip{} |
      suture::center_crop{.size = {1, size, size}} | suture::sampling<suture::linear, suture::reflect, suture::vote>{} |
      suture::macenko_normalize{.fitted = {&slide, 1}, .shared = true} |
      suture::random_hed_jitter{.alpha = {.9f, 1.1f}} | suture::channel_normalize{} | suture::cast<suture::half>{};

  std::vector<suture::half> batch(ids.size() * 3 * size * size);  // (sample, channel, y, x), as a tensor of a network
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    const auto plan = suture::plan(train, tiles, {.seed = 42, .epoch = epoch, .sample_ids = ids});
    const auto made = suture::batch_views(batch.data(), plan.output_grids(), 3);
    suture::run(suture::cpu{}, plan, suture::image(tiles, made));
    for (std::size_t i = 0; i < ids.size(); ++i)
      std::printf("epoch %u, tile %zu: first red %.3f, digest %016llx\n", epoch, i,
                  static_cast<double>(static_cast<float>(batch[i * 3 * size * size])),
                  static_cast<unsigned long long>(suture::digest(made[i])));
  }
} catch (const suture::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
