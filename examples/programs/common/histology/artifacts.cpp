// SPDX-License-Identifier: Apache-2.0
#include "artifacts.hpp"

#include "suture/math/elementary.hpp"

namespace suture::examples::histology {
namespace {

// 0..1.
float out_of_focus(const artifacts& a, point p) {
  return step(a.blur_radius, 0.75f * a.blur_radius, length(p - a.blur_center));
}

}  // namespace

artifacts artifacts::of(std::uint64_t seed, float height, float width) {
  artifacts made{};
  draws random = cell_draws(seed, places, 0, 0);
  made.blur_center = {random.uniform(0.62f, 0.72f) * height, random.uniform(0.60f, 0.72f) * width};
  made.blur_radius = 0.13f * height;
  made.fold_center = {random.uniform(0.35f, 0.45f) * height, random.uniform(0.30f, 0.40f) * width};
  const float turn = random.uniform(0.15f, 0.85f);
  made.fold_across = {math::cos(3.14159265f * turn), math::sin(3.14159265f * turn)};
  made.fold_half_length = 0.17f * height;
  const float from = random.uniform(0.06f, 0.12f) * width;
  for (std::size_t k = 0; k < made.pen.size(); ++k) {
    const float t = static_cast<float>(k) / static_cast<float>(made.pen.size() - 1);
    made.pen[k] = {(0.78f + 0.14f * t + 0.06f * math::sin(6 * t)) * height, from + (0.02f + 0.22f * t * t) * width};
  }
  return made;
}

void artifacts::fold(canvas& c, std::uint64_t seed) const {
  if (!c.covered().meets(fold_center, fold_half_length + 60)) return;
  const noise crooked(seed, fold_noise, c.covered().grown(4), 80);
  c.around(fold_center, fold_half_length + 50, [&](point p, std::size_t i) {
    const point d = p - fold_center;
    const float across = d.y * fold_across.y + d.x * fold_across.x + 16 * crooked(p);
    const float along = d.y * fold_across.x - d.x * fold_across.y;
    const float taper = 1 - along * along / (fold_half_length * fold_half_length);
    if (taper <= 0) return;
    const float width = 17 * std::sqrt(taper);
    const float inside = step(width, width - 5, std::abs(across));
    const float edge = step(5, 0, std::abs(std::abs(across) - width + 2)) * 0.5f;
    const float more = 1 + inside * (0.85f + edge);
    c.h[i] *= more;
    c.e[i] *= more;
  });
}

void artifacts::defocus(canvas& c, std::int64_t margin) const {
  if (!c.covered().meets(blur_center, blur_radius)) return;
  const auto radius = static_cast<std::int64_t>(2.6f / c.pixel() + 0.5f);
  if (radius < 1 || 2 * radius > margin) return;
  for (std::vector<float>* values : {&c.h, &c.e}) {
    // Two passes of a moving mean, along x and along y; summed anew for every pixel, so that regions agree.
    std::vector<float> blurred = *values, other(values->size());
    const float share = 1 / static_cast<float>(2 * radius + 1);
    for (int pass = 0; pass < 4; ++pass) {
      const std::int64_t dy = pass % 2, dx = 1 - dy;
      for (std::int64_t y = dy * radius; y < c.height() - dy * radius; ++y)
        for (std::int64_t x = dx * radius; x < c.width() - dx * radius; ++x) {
          float sum = 0;
          for (std::int64_t k = -radius; k <= radius; ++k)
            sum += blurred[static_cast<std::size_t>((y + k * dy) * c.width() + x + k * dx)];
          other[static_cast<std::size_t>(y * c.width() + x)] = sum * share;
        }
      std::swap(blurred, other);
    }
    c.each([&](point p, std::size_t i) { (*values)[i] += out_of_focus(*this, p) * (blurred[i] - (*values)[i]); });
  }
}

float artifacts::ink(point p) const {
  float nearest = 1e9f;
  for (std::size_t k = 0; k + 1 < pen.size(); ++k) {
    const point a = pen[k], ab = pen[k + 1] - a, ap = p - a;
    const float t = std::clamp((ap.y * ab.y + ap.x * ab.x) / (ab.y * ab.y + ab.x * ab.x), 0.0f, 1.0f);
    nearest = std::min(nearest, length(ap - ab * t));
  }
  return step(34, 24, nearest) * (0.8f + 0.2f * step(14, 30, nearest));
}

}  // namespace suture::examples::histology
