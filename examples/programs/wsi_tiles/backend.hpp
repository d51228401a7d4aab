// SPDX-License-Identifier: Apache-2.0
// Where tiles are worked on: the same calls for the CPU and for a GPU, so that the program chooses when it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/gpu.hpp"
#include "common/rgb_image.hpp"
#include "common/timed_runs.hpp"
#include "recipe.hpp"

namespace suture::examples {

// A tile as it was read, with the margin of read_size.
struct read_tile {
  std::size_t slide = 0;
  std::uint64_t id = 0;
  rgb_image pixels;
  std::vector<std::uint8_t> labels;  // one per pixel
  double spacing_mm = 0;             // between the pixels read
};

struct draw_options {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  bool evaluation = false;
};

// A finished batch: images (sample, channel, y, x), labels (sample, y, x).
struct batch {
  std::vector<half> images;
  std::vector<std::uint8_t> labels;
};

class backend {
public:
  virtual ~backend() = default;
  // The stains of a slide, from some of its tiles together.
  virtual stain_basis fit(const std::vector<rgb_image>& tiles) = 0;
  // stains: one per tile.
  virtual batch run(const std::vector<read_tile>& tiles, const std::vector<stain_basis>& stains,
                    const draw_options& draw) = 0;
  virtual std::string name() const = 0;
  virtual std::string device() const = 0;
  const run_statistics& spent() const { return spent_; }

protected:
  run_statistics spent_;
};

std::unique_ptr<backend> make_cpu_backend(const recipe& r, int threads);
std::unique_ptr<backend> make_cuda_backend(const recipe& r);

}  // namespace suture::examples
