// SPDX-License-Identifier: Apache-2.0
// Two thin sub-slices are averaged for the thickness of a slice. The library's own elementary functions, and no
// contraction of products and sums (see examples/CMakeLists.txt), make it the same volume everywhere, so that digests
// can be compared.
#include "phantom.hpp"

#include <algorithm>
#include <cmath>

#include "abdomen/organs.hpp"

namespace suture::examples {
namespace {

// Reconstructed noise: correlated within the slice, without its lowest frequencies.
void add_noise(std::vector<float>& hu, int nx, int ny, float sigma, std::uint64_t seed) {
  abdomen::dice random(seed);
  std::vector<float> white(hu.size()), rows(hu.size());
  for (float& w : white) w = random.normal();
  constexpr float kernel[5] = {-0.18f, 0.42f, 1.0f, 0.42f, -0.18f};
  float energy = 0;
  for (const float k : kernel) energy += k * k;
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<float>& from = pass == 0 ? white : rows;
    std::vector<float>& to = pass == 0 ? rows : white;
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x) {
        float sum = 0;
        for (int k = -2; k <= 2; ++k) {
          const int u = pass == 0 ? std::clamp(x + k, 0, nx - 1) : x;
          const int v = pass == 0 ? y : std::clamp(y + k, 0, ny - 1);
          sum += kernel[k + 2] * from[static_cast<std::size_t>(v * nx + u)];
        }
        to[static_cast<std::size_t>(y * nx + x)] = sum;
      }
  }
  const float scale = sigma / energy;
  for (std::size_t i = 0; i < hu.size(); ++i) hu[i] += scale * white[i] * (hu[i] < -500 ? 0.7f : 1.0f);
}

}  // namespace

phantom make_phantom(const phantom_options& options) {
  phantom result;
  grid& g = result.image.grid;
  g.extents = options.extents;
  g.spacing = options.spacing;
  check(g, site{"phantom"});
  require(std::isfinite(options.noise) && options.noise >= 0, site{"phantom"}, "noise ", options.noise,
          " must be zero or positive");
  for (int k = 0; k < 3; ++k) g.origin[k] = -0.5 * static_cast<double>(g.extents[k] - 1) * g.spacing[k];
  g.origin[1] += 8;  // the couch needs room behind the patient
  result.labels.grid = g;
  result.image.voxels.resize(static_cast<std::size_t>(g.voxels()));
  result.labels.voxels.resize(static_cast<std::size_t>(g.voxels()));

  const abdomen::patient who(options.seed);
  const int nx = static_cast<int>(g.extents[2]), ny = static_cast<int>(g.extents[1]);
  const auto slice_voxels = static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t slice = 0; slice < g.extents[0]; ++slice) {
    std::vector<float> hu(slice_voxels, 0), colon(slice_voxels, 0), lesions(slice_voxels, 0);
    for (const double part : {-0.25, 0.25}) {
      const double z = g.origin[0] + g.spacing[0] * (static_cast<double>(slice) + part);
      abdomen::canvas c(g, static_cast<float>(z), who);
      abdomen::paint_slice(c, who, colon, lesions);
      for (std::size_t i = 0; i < slice_voxels; ++i) hu[i] += 0.5f * c.hu[i];
    }
    add_noise(hu, nx, ny, static_cast<float>(options.noise),
              options.seed * 1000003u + static_cast<std::uint64_t>(slice));
    const std::size_t first = static_cast<std::size_t>(slice) * slice_voxels;
    for (std::size_t i = 0; i < slice_voxels; ++i) {
      result.image.voxels[first + i] = static_cast<std::int16_t>(std::lround(std::clamp(hu[i], -1024.0f, 3071.0f)));
      result.labels.voxels[first + i] = lesions[i] >= 1 ? label_lesion : colon[i] >= 1 ? label_colon : std::uint8_t{0};
    }
  }
  return result;
}

}  // namespace suture::examples
