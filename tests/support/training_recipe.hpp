// SPDX-License-Identifier: Apache-2.0
// A training recipe with everything in it, and what it must give: every random parameter drawn again from the published
// layout of streams and slots, every voxel computed in double by the reference.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../ref/coordinates.hpp"
#include "../ref/elastic.hpp"
#include "../ref/intensity.hpp"
#include "../ref/random.hpp"
#include "../ref/rotation.hpp"
#include "../ref/sample.hpp"
#include "library.hpp"
#include "suture/ops/value/gamma.hpp"
#include "suture/ops/value/gaussian_noise.hpp"
#include "suture/ops/value/window.hpp"

namespace support {

using reference::integer;
using reference::product;
using reference::size3;
using reference::volume;

// The scalar draws of one operation: slot 0 is its own coin.
class slots {
public:
  slots(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, std::uint16_t kind, std::uint16_t ordinal = 0)
      : operation_(static_cast<std::uint16_t>(kind << 4U | ordinal)),
        seed_(seed),
        epoch_(epoch),
        sample_(sample),
        stream_(reference::stream(seed, epoch, sample, operation_, 0)) {}

  bool fires(double probability) { return reference::u24(reference::slot_word(stream_, next_++)) < probability; }
  double uniform(double a, double b) { return a + (b - a) * reference::u24(reference::slot_word(stream_, next_++)); }
  integer below(integer n) {
    return static_cast<integer>(
        reference::integer_below(reference::slot_word(stream_, next_++), static_cast<std::uint64_t>(n)));
  }
  reference::words4 field(std::uint16_t purpose) const {
    return reference::stream(seed_, epoch_, sample_, operation_, purpose);
  }

private:
  std::uint16_t operation_;
  std::uint64_t seed_;
  std::uint32_t epoch_;
  std::uint64_t sample_;
  reference::words4 stream_;
  std::uint64_t next_ = 0;
};

struct sample_data {
  size3 size;
  reference::point spacing;
  std::uint64_t id;
  std::vector<std::int16_t> image;  // two channels
  std::vector<std::uint8_t> labels;

  suture::grid grid() const { return {.extents = extents(size), .spacing = point(spacing)}; }
};

// Smooth waves over the whole HU range, and blocks of labels.
inline sample_data make_sample(const size3& size, const reference::point& spacing, std::uint64_t id) {
  sample_data s{size, spacing, id, {}, {}};
  for (int channel = 0; channel < 2; ++channel)
    for (integer z = 0; z < size[0]; ++z)
      for (integer y = 0; y < size[1]; ++y)
        for (integer x = 0; x < size[2]; ++x) {
          const auto phase = static_cast<double>(id % 10 + static_cast<std::uint64_t>(3 * channel));
          const double wave = std::sin(0.5 * static_cast<double>(z) + phase) + std::cos(0.35 * static_cast<double>(y)) +
                              std::sin(0.3 * static_cast<double>(x) - phase);
          s.image.push_back(static_cast<std::int16_t>(40 + 130 * wave));
          if (channel == 0) s.labels.push_back(static_cast<std::uint8_t>((z / 4 + 2 * (y / 5) + 3 * (x / 6)) % 7));
        }
  return s;
}

struct recipe {
  std::uint64_t seed = 0x1234567890abcdefULL;
  std::uint32_t epoch = 3;
  size3 patch{14, 18, 20};
  reference::point spacing{1.5, 1.25, 1};
  double rotate = 15, scale_low = 0.85, scale_high = 1.25, translate = 4;
  integer control_points = 6;
  double displacement = 2;
};

// What the recipe does to one sample, redrawn.
struct expectation {
  const recipe& r;
  const sample_data& s;
  size3 resampled_size{};
  reference::point resampled_spacing{};
  bool moved = false, bent = false;
  reference::affine affine_pull;
  std::array<volume, 3> control;
  size3 start{};
  double exponent = 1, sigma = 0;
  reference::words4 noise{};

  expectation(const recipe& recipe_used, const sample_data& sample) : r(recipe_used), s(sample) {
    for (std::size_t k = 0; k < 3; ++k) {
      resampled_size[k] = reference::nnunet_size(s.size[k], s.spacing[k], r.spacing[k]);
      resampled_spacing[k] = s.spacing[k] * static_cast<double>(s.size[k]) / static_cast<double>(resampled_size[k]);
    }
    const volume grid(resampled_size);

    slots affine(r.seed, r.epoch, s.id, 1);
    moved = affine.fires(0.75);
    reference::point angles{}, scales{}, shift{};
    std::array<double, 6> shear{};
    for (double& a : angles) a = affine.uniform(-r.rotate, r.rotate) * std::acos(-1.0) / 180;
    for (double& a : scales) a = affine.uniform(r.scale_low, r.scale_high);
    for (double& a : shear) a = affine.uniform(-0.1, 0.1);
    for (double& a : shift) a = affine.uniform(-r.translate, r.translate);
    scales = {scales[0], scales[0], scales[0]};
    // Objects move forward, p' = R2 R1 R0 Sh S (p - c) + c + t in millimeters; the pull is the inverse.
    const reference::matrix rotation = product(
        product(reference::rotation_2(angles[2]), reference::rotation_1(angles[1])), reference::rotation_0(angles[0]));
    const reference::matrix sheared{{{1, shear[0], shear[1]}, {shear[2], 1, shear[3]}, {shear[4], shear[5], 1}}};
    const reference::matrix forward = product(product(rotation, sheared), reference::diagonal(scales));
    reference::point center = grid.center();
    for (std::size_t k = 0; k < 3; ++k) center[k] *= resampled_spacing[k];
    reference::affine in_mm = reference::about(forward, center, center);
    for (std::size_t k = 0; k < 3; ++k) in_mm.offset[k] += shift[k];
    const reference::affine to_mm{reference::diagonal(resampled_spacing), {0, 0, 0}};
    affine_pull = composed(inverted(to_mm), composed(inverted(in_mm), to_mm));

    slots elastic(r.seed, r.epoch, s.id, 2);
    bent = elastic.fires(0.75);
    const reference::words4 values = elastic.field(3);
    const integer n = r.control_points;
    std::uint64_t element = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      control[k] = volume({n, n, n});
      for (integer z = 0; z < n; ++z)
        for (integer y = 0; y < n; ++y)
          for (integer x = 0; x < n; ++x, ++element) {
            bool locked = false;
            for (const integer i : {z, y, x}) locked = locked || i < 2 || i >= n - 2;
            const double value = (2 * reference::element_uniform(values, element) - 1) * r.displacement;
            control[k].at(z, y, x) = locked ? 0 : value;  // millimeters
          }
    }

    slots crop(r.seed, r.epoch, s.id, 3);
    crop.fires(1);
    for (std::size_t k = 0; k < 3; ++k) start[k] = crop.below(resampled_size[k] - r.patch[k] + 1);

    slots gamma(r.seed, r.epoch, s.id, 32);
    const bool curved = gamma.fires(0.75);
    exponent = gamma.uniform(1, 1.5);
    if (!curved) exponent = 1;

    slots gaussian(r.seed, r.epoch, s.id, 33);
    const bool noisy = gaussian.fires(0.75);
    sigma = gaussian.uniform(0, 0.1);
    if (!noisy) sigma = 0;
    noise = gaussian.field(1);
  }

  reference::point pull(const reference::point& out) const {
    reference::point p = out;
    for (std::size_t k = 0; k < 3; ++k) p[k] += static_cast<double>(start[k]);
    if (bent) {
      const reference::point u = reference::bspline_displacement(control, p, resampled_size, 0);
      for (std::size_t k = 0; k < 3; ++k) p[k] += u[k] / resampled_spacing[k];
    }
    if (moved) p = affine_pull(p);
    for (std::size_t k = 0; k < 3; ++k) p[k] = reference::half_pixel(p[k], s.size[k], resampled_size[k]);
    return p;
  }

  std::vector<double> image(int channel) const {
    const std::size_t voxels = s.labels.size();
    const auto first = s.image.begin() + channel * static_cast<std::ptrdiff_t>(voxels);
    volume windowed(s.size, std::vector<double>(first, first + static_cast<std::ptrdiff_t>(voxels)));
    for (double& v : windowed.values) v = reference::window_linear_exact(v, 40, 400);
    volume y = reference::resampled(windowed, r.patch, [&](const reference::point& p) { return pull(p); },
                                    {reference::interpolation::linear, reference::outside::blend_constant, 0});
    std::uint64_t element = static_cast<std::uint64_t>(channel) * y.values.size();
    for (double& v : y.values)
      v = reference::gaussian_noise(reference::gamma_value(v, exponent, 0, 1), sigma,
                                    reference::element_normal(noise, element++));
    return y.values;
  }

  std::vector<double> nearest_labels() const {
    const volume x(s.size, s.labels);
    return reference::resampled(x, r.patch, [&](const reference::point& p) { return pull(p); },
                                {reference::interpolation::nearest, reference::outside::blend_constant, 0})
        .values;
  }

  std::vector<double> away_from_ties() const {
    std::vector<double> mask;
    for (double z = 0; z < static_cast<double>(r.patch[0]); ++z)
      for (double y = 0; y < static_cast<double>(r.patch[1]); ++y)
        for (double x = 0; x < static_cast<double>(r.patch[2]); ++x) {
          bool clear = true;
          for (const double c : pull({z, y, x})) clear = clear && std::abs(c - std::floor(c) - 0.5) > 1e-4;
          mask.push_back(clear ? 1 : 0);
        }
    return mask;
  }
};

inline auto training(const recipe& r) {
  const auto f = [](double v) { return static_cast<float>(v); };
  const auto n = static_cast<std::int32_t>(r.control_points);
  return suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = point(r.spacing)} |
         suture::random_affine{.rotate_deg = f(r.rotate),
                               .scale = {f(r.scale_low), f(r.scale_high)},
                               .shear = 0.1F,
                               .translate = f(r.translate),
                               .probability = 0.75F} |
         suture::random_elastic{.max_displacement_mm = r.displacement,
                                .allow_folding = true,
                                .control_points = {n, n, n},
                                .probability = 0.75F} |
         suture::random_crop{.size = extents(r.patch)} |
         suture::random_gamma{.range = {1.0F, 1.5F}, .probability = 0.75F} |
         suture::gaussian_noise{.sigma = {0, 0.1F}, .probability = 0.75F};
}

inline std::vector<sample_data> make_batch() {
  return {make_sample({16, 24, 30}, {2.5, 1.1, 0.9}, 42),
          make_sample({22, 27, 25}, {1.5, 1.25, 1}, 7),
          make_sample({13, 31, 40}, {2, 1, 0.75}, 0xfedcba9876543210ULL),
          make_sample({25, 33, 26}, {1, 1, 1}, 0),
          make_sample({16, 24, 30}, {2.5, 1.1, 0.9}, 43),
          make_sample({18, 19, 33}, {1.75, 1.5, 0.8}, 5)};
}

}  // namespace support
