// SPDX-License-Identifier: Apache-2.0
// Points, chance, signed distances and random fields that the phantom of an abdomen is made of. All lengths are
// millimeters, positions (x to the left, y to the back, z to the head) around the body's middle.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

namespace suture::examples::abdomen {

inline constexpr float pi = std::numbers::pi_v<float>;

struct point {
  float x, y, z;
  friend point operator+(point a, point b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend point operator-(point a, point b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend point operator*(point a, float s) { return {a.x * s, a.y * s, a.z * s}; }
};
inline float dot(point a, point b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline float length(point a) { return std::sqrt(dot(a, a)); }

class dice {
public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  // Own conversion: the distributions of the standard library differ between implementations.
  float uniform(float a, float b) { return a + (b - a) * static_cast<float>(engine_() >> 40) * (1.0f / 16777216.0f); }
  int integer(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  // The sum of four uniforms is normal enough for anatomy and noise.
  float normal() {
    const std::uint64_t bits = engine_();
    float sum = -131070;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>((bits >> (16 * i)) & 0xffff);
    return sum * (1.7320508f / 65536);
  }
  point jitter(float amount) { return {uniform(-amount, amount), uniform(-amount, amount), uniform(-amount, amount)}; }

private:
  std::mt19937_64 engine_;
};

inline float ellipsoid(point p, point center, point radius) {
  const point q = p - center;
  const point a{q.x / radius.x, q.y / radius.y, q.z / radius.z};
  const point b{a.x / radius.x, a.y / radius.y, a.z / radius.z};
  const float k0 = length(a), k1 = length(b);
  return k1 > 0 ? k0 * (k0 - 1) / k1 : -std::min({radius.x, radius.y, radius.z});
}
// A cylinder along z with an elliptic section.
inline float column(point p, float x, float y, float rx, float ry) { return ellipsoid(p, {x, y, p.z}, {rx, ry, 1}); }
inline float capsule(point p, point a, point b, float ra, float rb) {
  const point ab = b - a, ap = p - a;
  const float t = std::clamp(dot(ap, ab) / dot(ab, ab), 0.0f, 1.0f);
  return length(ap - ab * t) - (ra + (rb - ra) * t);
}
// Union with a rounded seam.
inline float blend(float a, float b, float width) {
  const float h = std::clamp(0.5f + 0.5f * (b - a) / width, 0.0f, 1.0f);
  return b + (a - b) * h - width * h * (1 - h);
}

// A smooth random field in about -1..1: a few plane waves.
class waves {
public:
  waves(dice& random, float shortest, float longest) {
    for (auto& w : wave_) {
      point k{random.normal(), random.normal(), random.normal()};
      const float wavelength = random.uniform(shortest, longest);
      k = k * (1 / (wavelength * std::max(length(k), 0.1f)));
      w = {k, random.uniform(0, 1)};
    }
  }
  float operator()(point p) const {
    float sum = 0;
    for (const auto& w : wave_) {
      // Parabolas in place of a sine: this runs several times per voxel.
      float turn = dot(w.k, p) + w.phase;
      turn -= std::floor(turn + 0.5f);
      sum += turn * (8 - 16 * std::abs(turn));
    }
    return sum * (1.0f / 2.8f);
  }

private:
  struct wave {
    point k;
    float phase;
  };
  std::array<wave, 6> wave_;
};

}  // namespace suture::examples::abdomen
