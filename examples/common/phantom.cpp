// SPDX-License-Identifier: Apache-2.0
// Organs are painted one over the other, each with a signed distance (negative inside) turned into a coverage, so that
// every boundary shows partial volume; two thin sub-slices are averaged for the thickness of a slice.
// The library's own elementary functions, and no contraction of products and sums (see examples/CMakeLists.txt), make
// it the same volume everywhere, so that digests can be compared.
// All lengths are millimetres, positions (x to the left, y to the back, z to the head) around the body's middle.
#include "phantom.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include "suture/math/elementary.hpp"

namespace suture::examples {
namespace {

constexpr float pi = std::numbers::pi_v<float>;

struct point {
  float x, y, z;
  friend point operator+(point a, point b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend point operator-(point a, point b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend point operator*(point a, float s) { return {a.x * s, a.y * s, a.z * s}; }
};
float dot(point a, point b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
float length(point a) { return std::sqrt(dot(a, a)); }

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

float ellipsoid(point p, point center, point radius) {
  const point q = p - center;
  const point a{q.x / radius.x, q.y / radius.y, q.z / radius.z};
  const point b{a.x / radius.x, a.y / radius.y, a.z / radius.z};
  const float k0 = length(a), k1 = length(b);
  return k1 > 0 ? k0 * (k0 - 1) / k1 : -std::min({radius.x, radius.y, radius.z});
}
// A cylinder along z with an elliptic section.
float column(point p, float x, float y, float rx, float ry) { return ellipsoid(p, {x, y, p.z}, {rx, ry, 1}); }
float capsule(point p, point a, point b, float ra, float rb) {
  const point ab = b - a, ap = p - a;
  const float t = std::clamp(dot(ap, ab) / dot(ab, ab), 0.0f, 1.0f);
  return length(ap - ab * t) - (ra + (rb - ra) * t);
}
// Union with a rounded seam.
float blend(float a, float b, float width) {
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

struct tube_point {
  point at;
  float radius, level;  // level: gas lies in front of this y
};
using tube = std::vector<tube_point>;

// Catmull-Rom through the knots, a point about every `step`.
std::vector<point> smooth_path(const std::vector<point>& knots, float step) {
  std::vector<point> path;
  const auto knot = [&](std::size_t i) { return knots[std::min(i, knots.size() - 1)]; };
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const point a = knot(i == 0 ? 0 : i - 1), b = knot(i), c = knot(i + 1), d = knot(i + 2);
    const int count = std::max(1, static_cast<int>(length(c - b) / step));
    for (int j = 0; j < count; ++j) {
      const float t = static_cast<float>(j) / static_cast<float>(count);
      path.push_back(
          (b * 2 + (c - a) * t + (a * 2 - b * 5 + c * 4 - d) * (t * t) + (b * 3 - a - c * 3 + d) * (t * t * t)) * 0.5f);
    }
  }
  path.push_back(knots.back());
  return path;
}

// Where the stretches of the colon end, as fractions of its length.
constexpr std::array<float, 7> colon_stretches{0.0f, 0.2f, 0.36f, 0.5f, 0.68f, 0.84f, 1.0f};

// From the caecum over both flexures to the rectum.
tube make_colon(dice& random) {
  std::vector<point> knots{{-76, -30, -100}, {-88, -18, -76}, {-96, 0, -46},   {-106, 16, -20}, {-104, 12, 0},
                           {-90, -24, 6},    {-62, -56, 2},   {-24, -66, -10}, {20, -66, -4},   {58, -60, 18},
                           {88, -40, 46},    {104, -10, 60},  {116, 22, 42},   {118, 34, 14},   {114, 32, -20},
                           {96, 8, -56},     {84, -8, -84},   {62, -26, -104}, {34, -36, -90},  {8, -30, -104},
                           {-14, -6, -116},  {-10, 26, -124}, {4, 44, -138},   {2, 46, -165}};
  for (point& k : knots) k = k + random.jitter(5);
  const std::vector<point> path = smooth_path(knots, 2);
  tube colon;
  const auto count = static_cast<float>(path.size());
  const float haustra_phase = random.uniform(0, 2 * pi);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const float s = static_cast<float>(i) / count;
    const float calibre = 27 - 11 * std::min(1.0f, s * 1.5f) + 2 * math::sin(9 * s + haustra_phase);
    const float haustra = math::pow(std::abs(math::sin(static_cast<float>(i) * (2 * pi / 34) + haustra_phase)), 0.6f);
    // A contraction parts every stretch from the next, each with its own level of fluid.
    float contraction = 0;
    for (std::size_t k = 1; k < colon_stretches.size() - 1; ++k) {
      const float away = (s - colon_stretches[k]) * count / 7;
      contraction = std::max(contraction, math::exp(-away * away));
    }
    colon.push_back({path[i], calibre * (0.82f + 0.18f * haustra) * (1 - 0.72f * contraction), 0});
  }
  for (std::size_t k = 0; k + 1 < colon_stretches.size(); ++k) {
    const auto first = static_cast<std::size_t>(colon_stretches[k] * count);
    const auto last = static_cast<std::size_t>(colon_stretches[k + 1] * count);
    float sum = 0, radius = 0;
    for (std::size_t i = first; i < last; ++i) {
      sum += path[i].y;
      radius += colon[i].radius;
    }
    const float level = (sum - random.uniform(0.0f, 0.5f) * radius) / static_cast<float>(last - first);
    for (std::size_t i = first; i < last; ++i) colon[i].level = level;
  }
  return colon;
}

// Loops of small bowel: a self-avoiding walk on a loose lattice, so that loops touch but do not cross.
std::vector<point> small_bowel_walk(dice& random) {
  constexpr int nx = 6, ny = 3, nz = 5;
  std::array<bool, nx * ny * nz> visited{};
  const auto slot = [](int x, int y, int z) { return static_cast<std::size_t>((z * ny + y) * nx + x); };
  int x = 4, y = 1, z = nz - 1;  // where the jejunum begins
  std::vector<point> knots;
  for (;;) {
    visited[slot(x, y, z)] = true;
    knots.push_back(point{-66.0f + 26 * static_cast<float>(x), -58.0f + 25 * static_cast<float>(y),
                          -112.0f + 25 * static_cast<float>(z)} +
                    random.jitter(4));
    constexpr int steps[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    const auto open = [&](int ax, int ay, int az) {
      return ax >= 0 && ay >= 0 && az >= 0 && ax < nx && ay < ny && az < nz && !visited[slot(ax, ay, az)];
    };
    int best = -1;
    float fewest = 100;  // Warnsdorff: towards the node with the fewest ways on
    for (int i = 0; i < 6; ++i) {
      const int ax = x + steps[i][0], ay = y + steps[i][1], az = z + steps[i][2];
      if (!open(ax, ay, az)) continue;
      float ways = random.uniform(0, 0.9f);
      for (const auto& s : steps) ways += open(ax + s[0], ay + s[1], az + s[2]) ? 1.0f : 0.0f;
      if (ways < fewest) {
        fewest = ways;
        best = i;
      }
    }
    if (best < 0) break;
    x += steps[best][0];
    y += steps[best][1];
    z += steps[best][2];
  }
  return knots;
}

tube make_small_bowel(dice& random) {
  std::vector<point> knots;
  for (int attempt = 0; attempt < 40; ++attempt) {
    std::vector<point> walk = small_bowel_walk(random);
    if (walk.size() > knots.size()) knots = std::move(walk);
  }
  tube bowel;
  const float phase = random.uniform(0, 2 * pi);
  float fluid = -1000;
  for (const point& p : smooth_path(knots, 2)) {
    const auto i = static_cast<float>(bowel.size());
    const bool gas = math::sin(i * 0.023f + phase) > 0.8f;
    if (!gas) fluid = p.y - 3;  // a pocket of gas keeps the level it began with
    bowel.push_back({p, 11.5f + 1.5f * math::sin(i * 0.11f), gas ? fluid : -1000.0f});
  }
  return bowel;
}

struct lesion {
  point center, radius;
};

// Masses that grow from the wall into the lumen.
std::vector<lesion> make_lesions(dice& random, const tube& colon) {
  constexpr float where[] = {0.09f, 0.44f, 0.66f, 0.87f};
  std::vector<lesion> lesions;
  for (const float s : where) {
    const float moved = std::clamp(s + random.uniform(-0.05f, 0.05f), 0.02f, 0.95f);
    const auto index = static_cast<std::size_t>(moved * static_cast<float>(colon.size()));
    const tube_point& c = colon[index];
    const point along = colon[std::min(index + 3, colon.size() - 1)].at - c.at;
    point side{random.normal(), random.normal(), random.normal()};
    side = side - along * (dot(side, along) / std::max(dot(along, along), 1e-3f));
    side = side * (1 / std::max(length(side), 1e-3f));
    const float r = random.uniform(0.5f, 0.8f) * c.radius;
    lesions.push_back(
        {c.at + side * (c.radius - 0.55f * r),
         {r * random.uniform(0.9f, 1.2f), r * random.uniform(0.9f, 1.2f), r * random.uniform(1.0f, 1.4f)}});
  }
  return lesions;
}

struct vessel {
  point a, b;
  float ra, rb;
};

// Branching from a stem, thinner with every generation.
void grow(dice& random, std::vector<vessel>& tree, point from, point direction, float radius, int generations) {
  const float reach = random.uniform(5, 8) * std::sqrt(radius) + 6;
  const point to = from + direction * reach;
  tree.push_back({from, to, radius, radius * 0.85f});
  if (generations == 0) return;
  for (int i = 0; i < 2; ++i) {
    point turned = direction + point{random.normal(), random.normal(), random.normal()} * 0.5f;
    turned = turned * (1 / std::max(length(turned), 1e-3f));
    grow(random, tree, to, turned, radius * random.uniform(0.65f, 0.8f), generations - 1);
  }
}

struct patient {
  tube colon, bowel;
  std::vector<lesion> lesions;
  std::vector<vessel> liver_vessels, mesentery;
  waves bend_x, bend_y, fat, stool, marrow, mottle;

  explicit patient(std::uint64_t seed) : patient(dice(seed * 0x9e3779b97f4a7c15u + 1)) {}

private:
  explicit patient(dice random)
      : colon(make_colon(random)),
        bowel(make_small_bowel(random)),
        lesions(make_lesions(random, colon)),
        bend_x(random, 110, 280),
        bend_y(random, 110, 280),
        fat(random, 12, 60),
        stool(random, 5, 14),
        marrow(random, 3, 9),
        mottle(random, 9, 30) {
    grow(random, liver_vessels, {-22, -12, 72}, {-0.9f, -0.1f, 0.35f}, 5, 6);
    grow(random, liver_vessels, {-22, 2, 122}, {-0.8f, -0.3f, -0.5f}, 4.5f, 6);
    grow(random, liver_vessels, {-20, -4, 118}, {-0.2f, -0.9f, -0.2f}, 3.5f, 4);
    grow(random, mesentery, {4, -14, 30}, {0.1f, -0.4f, -0.9f}, 5, 6);
    grow(random, mesentery, {2, -14, 20}, {-0.6f, -0.3f, -0.8f}, 4, 6);
    grow(random, mesentery, {8, -12, 10}, {0.6f, -0.3f, -0.8f}, 4, 6);
  }
};

// One thin slice being painted.
class canvas {
public:
  canvas(const grid& g, float z, const patient& who) : z_(z) {
    nx_ = static_cast<int>(g.extents[2]);
    ny_ = static_cast<int>(g.extents[1]);
    dx_ = static_cast<float>(g.spacing[2]);
    dy_ = static_cast<float>(g.spacing[1]);
    x0_ = static_cast<float>(g.origin[2]);
    y0_ = static_cast<float>(g.origin[1]);
    softness_ = 1 / (1.1f * std::max(dx_, dy_));
    const auto count = static_cast<std::size_t>(nx_ * ny_);
    hu.assign(count, -1000);
    bent_.resize(count);
    // The bending of straight anatomy is smooth: evaluated on every eighth voxel, linear between.
    constexpr int cell = 8;
    const int cx = nx_ / cell + 2, cy = ny_ / cell + 2;
    std::vector<std::array<float, 2>> coarse(static_cast<std::size_t>(cx * cy));
    for (int j = 0; j < cy; ++j)
      for (int i = 0; i < cx; ++i) {
        const point p{x0_ + dx_ * static_cast<float>(i * cell), y0_ + dy_ * static_cast<float>(j * cell), z};
        coarse[static_cast<std::size_t>(j * cx + i)] = {4.5f * who.bend_x(p), 3.5f * who.bend_y(p)};
      }
    for (int y = 0; y < ny_; ++y)
      for (int x = 0; x < nx_; ++x) {
        const int i = x / cell, j = y / cell;
        const float fx = static_cast<float>(x % cell) / cell, fy = static_cast<float>(y % cell) / cell;
        const auto* row = &coarse[static_cast<std::size_t>(j * cx + i)];
        const auto* next = row + cx;
        std::array<float, 2> d;
        for (std::size_t k = 0; k < 2; ++k)
          d[k] = (row[0][k] * (1 - fx) + row[1][k] * fx) * (1 - fy) + (next[0][k] * (1 - fx) + next[1][k] * fx) * fy;
        // Lordosis: the lumbar spine and what lies before it arch forwards.
        const point p = at(x, y);
        const float arch = 9 * math::exp(-(z + 10) * (z + 10) / 4500) * std::clamp((p.y + 50) / 90, 0.0f, 1.0f);
        bent_[static_cast<std::size_t>(y * nx_ + x)] = {p.x + d[0], p.y + d[1] + arch, z_};
      }
  }

  float z() const { return z_; }
  // Fluid levels do not bend with the anatomy.
  float height(std::size_t i) const { return y0_ + dy_ * static_cast<float>(static_cast<int>(i) / nx_); }
  point at(int x, int y) const { return {x0_ + dx_ * static_cast<float>(x), y0_ + dy_ * static_cast<float>(y), z_}; }
  std::size_t index(int x, int y) const { return static_cast<std::size_t>(y * nx_ + x); }
  float coverage(float distance) const { return std::clamp(0.5f - distance * softness_, 0.0f, 1.0f); }

  // f(point, index) for the voxels of a rectangle.
  template <class F>
  void each(float x_low, float x_high, float y_low, float y_high, F f) const {
    const int left = std::max(0, static_cast<int>(std::floor((x_low - x0_) / dx_)));
    const int right = std::min(nx_ - 1, static_cast<int>(std::ceil((x_high - x0_) / dx_)));
    const int top = std::max(0, static_cast<int>(std::floor((y_low - y0_) / dy_)));
    const int bottom = std::min(ny_ - 1, static_cast<int>(std::ceil((y_high - y0_) / dy_)));
    for (int y = top; y <= bottom; ++y)
      for (int x = left; x <= right; ++x) f(bent_[index(x, y)], index(x, y));
  }
  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < bent_.size(); ++i) f(bent_[i], i);
  }
  template <class F>
  void each_straight(F f) const {
    for (int y = 0; y < ny_; ++y)
      for (int x = 0; x < nx_; ++x) f(at(x, y), index(x, y));
  }
  void mix(std::size_t i, float alpha, float value) { hu[i] += alpha * (value - hu[i]); }
  void paint(std::size_t i, float distance, float value) { mix(i, coverage(distance), value); }

  std::vector<float> hu;

private:
  float z_, x0_, y0_, dx_, dy_, softness_;
  int nx_, ny_;
  std::vector<point> bent_;
};

// Half-axes of the body at a level.
std::array<float, 2> body_axes(float z) {
  const float waist = math::exp(-(z - 25) * (z - 25) / 3600);
  const float hips = 1 / (1 + math::exp((z + 80) / 18));
  return {163 - 9 * waist + 7 * hips, 110 - 4 * waist + 3 * hips};
}

// Depth below the skin, negative outside; along the ray from the middle.
float depth_below_skin(point p, float a, float b) {
  const float u = p.x / a, v = p.y / b;
  const float round = u * u + v * v;
  const float boxy = std::sqrt(u * u * u * u + v * v * v * v);
  const float f = std::sqrt(0.55f * round + 0.45f * boxy);
  const float r = std::sqrt(p.x * p.x + p.y * p.y);
  return f > 1e-3f ? r * (1 / f - 1) : std::min(a, b);
}

void paint_slice(canvas& c, const patient& who, std::vector<float>& colon_cover, std::vector<float>& lesion_cover) {
  const float z = c.z();
  const std::array<float, 2> axes = body_axes(z);
  const float a = axes[0], b = axes[1];
  const float hips = std::clamp((-55 - z) / 30, 0.0f, 1.0f);
  std::vector<float> cavity(c.hu.size());  // signed distance to the inside of the muscle wall

  // Couch: a shallow curved shell filled with foam, not bent with the patient.
  c.each_straight([&](point p, std::size_t i) {
    const float upper = 122 - p.x * p.x * 0.0011f;
    const float couch = std::max({upper - p.y, p.y - upper - 26, std::abs(p.x) - 205});
    c.paint(i, couch, 20);
    c.paint(i, couch + 1.8f, -935);
  });

  // Skin, fat, the muscles of the wall.
  c.each([&](point p, std::size_t i) {
    const float depth = depth_below_skin(p, a, b);
    const float side = std::abs(p.x) / a;
    const float back = std::clamp(p.y / b, 0.0f, 1.0f);
    const float front = std::clamp(-p.y / b, 0.0f, 1.0f);
    const float fat = 13 + 7 * side + 9 * back + 5 * front + 14 * hips * side;
    const float wall = 11 - 3 * front + 12 * hips * side * (1 - front);
    cavity[i] = fat + wall - depth;
    if (depth < -2) return;
    c.paint(i, -depth, 25);
    c.paint(i, 2.2f - depth, -105 + 8 * who.fat(p));
    c.paint(i, fat - depth, 58);
    // Three flat muscles at the side, parted by thin fat; the white line between the two straight ones in front.
    if (front < 0.75f && back < 0.6f && hips < 0.5f)
      for (const float sheet : {0.36f, 0.68f})
        c.mix(i, 0.55f * std::max(0.0f, 1 - std::abs(depth - fat - sheet * wall)), -80);
    c.paint(i, cavity[i], -102 + 7 * who.fat(p));
  });

  // Muscles beside the spine, over the pelvis and in front of it.
  for (const float s : {-1.0f, 1.0f}) {
    c.each(s * 45 - 60, s * 45 + 60, -20, 110, [&](point p, std::size_t i) {
      const float erector =
          blend(ellipsoid(p, {s * 27, 74, z}, {21, 17, 1}), ellipsoid(p, {s * 48, 68, z}, {18, 14, 1}), 6);
      c.paint(i, erector, 52 - 28 * std::max(0.0f, who.mottle(p) - 0.3f));
      if (z < 75) {
        const float growth = std::clamp((75 - z) / 90, 0.0f, 1.0f);
        c.paint(i, column(p, s * (33 + 10 * growth), 34 - 14 * hips, 9 + 9 * growth, 11 + 9 * growth), 60);
      }
      if (z < 60 && z > -60) c.paint(i, capsule(p, {s * 52, 50, z}, {s * 74, 50, z}, 5, 4), 58);
    });
    if (hips > 0)
      c.each(s * 95 - 75, s * 95 + 75, -60, 110, [&](point p, std::size_t i) {
        const float gluteal = capsule(p, {s * 60, 82, z}, {s * 118, 34, z}, 17 * hips, 19 * hips);
        c.paint(i, gluteal, 56 - 40 * std::max(0.0f, who.mottle(p) - 0.4f));
      });
  }

  // The wings of the pelvis with the iliac muscle on their inside; bowel stays clear of both.
  const bool pelvis = z < -46;
  std::vector<float> wing(pelvis ? c.hu.size() : 0, 1e3f);
  if (pelvis) {
    const float down = -46 - z;
    const float open = std::min(1.0f, down / 45), thick = std::sqrt(std::min(1.0f, down / 24));
    for (const float s : {-1.0f, 1.0f}) {
      const point back{s * (96 - 42 * open), 48 + 18 * open, z};
      const point middle{s * (108 - 12 * open), 30 - 4 * open, z};
      const point front{s * (116 + 6 * open), 22 - 44 * open, z};
      c.each(s * 90 - 65, s * 90 + 65, -60, 100, [&](point p, std::size_t i) {
        wing[i] = blend(capsule(p, back, middle, 9 * thick, 5.5f * thick),
                        capsule(p, middle, front, 5.5f * thick, 7.5f * thick), 4) +
                  0.8f * who.mottle(p);
        if (cavity[i] < 0) c.paint(i, wing[i] - 10 * thick, 58);
        cavity[i] = std::max(cavity[i], 12 * thick - wing[i]);
      });
    }
    c.each(-60, 60, -70, 40, [&](point p, std::size_t i) {
      const float bladder = ellipsoid(p, {2, -22, -166}, {42, 34, 42});
      c.paint(i, bladder, 42);
      c.paint(i, bladder + 3, 6);
    });
  }

  // Liver, spleen, stomach, pancreas, gallbladder, kidneys with their adrenal-free fat around.
  const auto inside = [&](float distance, std::size_t i, float gap) { return std::max(distance, cavity[i] + gap); };
  c.each([&](point p, std::size_t i) {
    if (cavity[i] > 4) return;
    float liver = blend(ellipsoid(p, {-72, -6, 100}, {74, 88, 74}), ellipsoid(p, {-4, -58, 112}, {78, 36, 42}), 22);
    liver = std::max(liver, -ellipsoid(p, {40, 60, 90}, {75, 62, 140}));  // the hollow over spine and stomach
    liver = std::max(liver, -ellipsoid(p, {-58, 52, 28}, {36, 34, 58}));  // and over the right kidney
    c.paint(i, inside(liver, i, 2), 112);
  });
  for (const vessel& v : who.liver_vessels) {
    if (std::min(v.a.z, v.b.z) > z + 8 || std::max(v.a.z, v.b.z) < z - 8) continue;
    c.each(std::min(v.a.x, v.b.x) - 14, std::max(v.a.x, v.b.x) + 14, std::min(v.a.y, v.b.y) - 14,
           std::max(v.a.y, v.b.y) + 14, [&](point p, std::size_t i) {
             if (c.hu[i] > 100 && cavity[i] < -5) c.paint(i, capsule(p, v.a, v.b, v.ra, v.rb), 158);
           });
  }
  c.each(50, 150, -30, 110, [&](point p, std::size_t i) {
    c.paint(i, inside(ellipsoid(p, {108, 38, 108}, {25, 42, 44}), i, 2), 122);
  });
  c.each(-10, 130, -90, 60, [&](point p, std::size_t i) {
    const float stomach =
        inside(blend(ellipsoid(p, {56, -22, 112}, {42, 42, 50}), ellipsoid(p, {22, -40, 74}, {34, 24, 20}), 18), i, 3);
    c.paint(i, stomach, 85);
    c.paint(i, stomach + 4.5f, c.height(i) < -42 ? -960.0f : 14.0f);
  });
  c.each(-50, 120, -40, 60, [&](point p, std::size_t i) {
    float pancreas = capsule(p, {-20, -8, 48}, {8, -18, 60}, 13, 8);
    pancreas = blend(pancreas, capsule(p, {8, -18, 60}, {46, 2, 74}, 8, 8), 5);
    pancreas = blend(pancreas, capsule(p, {46, 2, 74}, {84, 20, 88}, 8, 7), 5);
    c.paint(i, pancreas + 1.6f * who.mottle(p), 98);
  });
  c.each(-80, -10, -90, 0, [&](point p, std::size_t i) {
    const float gallbladder = ellipsoid(p, {-46, -46, 44}, {15, 20, 27});
    c.paint(i, gallbladder, 70);
    c.paint(i, gallbladder + 2, 11);
  });
  for (const float s : {-1.0f, 1.0f}) {
    const point center{s > 0 ? 68.0f : -64.0f, 46, s > 0 ? 42.0f : 26.0f};
    if (std::abs(z - center.z) > 60) continue;
    c.each(center.x - 40, center.x + 40, 0, 95, [&](point p, std::size_t i) {
      const point q = p - center;
      // The lower pole lies further out and in front; the hilum looks inwards and forwards.
      const point tilted{q.x * 0.87f + q.y * 0.48f * s + s * 0.18f * q.z, q.y * 0.87f - q.x * 0.48f * s + 0.1f * q.z,
                         q.z};
      float kidney = ellipsoid(tilted, {0, 0, 0}, {21, 27, 54});
      const float hilum = ellipsoid(tilted, {-s * 17, -12, 0}, {9, 11, 17});
      kidney = std::max(kidney, -hilum);
      c.paint(i, kidney, 196);
      const float core = std::max(ellipsoid(tilted, {0, 0, 0}, {14, 20, 45}), -hilum);
      c.paint(i, core + 2.5f * who.mottle(p), 150);
      c.paint(i, ellipsoid(tilted, {-s * 7, -5, 0}, {7, 10, 24}) + 3 * who.mottle(p), -70);
      c.paint(i, capsule(p, center + point{-s * 8, -8, 0}, center + point{-s * 26, -16, -2}, 3.5f, 3), 165);
    });
  }

  // Great vessels; the aorta divides at L4, the vena cava a little lower.
  c.each(-90, 90, -40, 70, [&](point p, std::size_t i) {
    float aorta = column(p, 10, 10, 9.5f, 9.5f), cava = column(p, -19, 10, 12, 9);
    if (z < -40) {
      const float down = -40 - z;
      aorta = std::min(ellipsoid(p, {10 + 0.2f * down, 9 - 0.02f * down, z}, {6.5f, 6, 1}),
                       ellipsoid(p, {10 - 0.42f * down, 9 - 0.02f * down, z}, {6.5f, 6, 1}));
    }
    if (z < -50) {
      const float down = -50 - z;
      cava = std::min(ellipsoid(p, {-19 + 0.6f * down, 20 + 0.05f * down, z}, {8, 6, 1}),
                      ellipsoid(p, {-19 - 0.12f * down, 20 + 0.05f * down, z}, {8, 6, 1}));
    }
    c.paint(i, cava, 150);
    c.paint(i, aorta, 168);
    c.mix(i, 0.9f * c.coverage(std::abs(aorta + 0.6f) - 0.5f) * std::clamp(who.marrow(p) * 4 - 2.2f, 0.0f, 1.0f), 520);
  });
  for (const vessel& v : who.mesentery) {
    if (std::min(v.a.z, v.b.z) > z + 8 || std::max(v.a.z, v.b.z) < z - 8) continue;
    c.each(std::min(v.a.x, v.b.x) - 14, std::max(v.a.x, v.b.x) + 14, std::min(v.a.y, v.b.y) - 14,
           std::max(v.a.y, v.b.y) + 14, [&](point p, std::size_t i) {
             if (cavity[i] < -6) c.paint(i, capsule(p, v.a, v.b, 0.7f * v.ra, 0.7f * v.rb), 145);
           });
  }

  // Bowel. The distance to a tube is that to its nearest ball; the nearest ball also says where its fluid stands.
  std::vector<float> distance(c.hu.size());
  std::vector<float> level(c.hu.size());
  const auto measure = [&](const tube& t) {
    std::fill(distance.begin(), distance.end(), 1e3f);
    for (const tube_point& ball : t) {
      const float reach = ball.radius + 12;
      if (std::abs(ball.at.z - z) > reach) continue;
      c.each(ball.at.x - reach, ball.at.x + reach, ball.at.y - reach, ball.at.y + reach, [&](point p, std::size_t i) {
        const float d = length(p - ball.at) - ball.radius;
        if (d < distance[i]) {
          distance[i] = d;
          level[i] = ball.level;
        }
      });
    }
  };
  measure(who.bowel);
  c.each([&](point p, std::size_t i) {
    const float d = std::max(distance[i], cavity[i] + 3);
    if (d > 3) return;
    c.paint(i, d, 92);
    const float content = c.height(i) < level[i] ? -900.0f : 28 + 10 * who.mottle(p);
    c.paint(i, d + 2.2f + 1.2f * who.stool(p), content);
  });
  measure(who.colon);
  c.each([&](point p, std::size_t i) {
    const float d = std::max(distance[i], cavity[i] + 2.5f);
    if (d > 8) return;
    c.paint(i, d, 96);
    const float lumen = d + 2.8f;
    // Rectal contrast mixed with some stool below, gas above.
    const float below = 330 + 45 * who.mottle(p) - 130 * std::clamp(3 * who.stool(p) - 1.4f, 0.0f, 1.0f);
    const float gas = c.coverage(c.height(i) - level[i]);
    c.paint(i, lumen, below + gas * (-970 - below));
    colon_cover[i] += c.coverage(d);
    for (const lesion& l : who.lesions) {
      if (std::abs(p.z - l.center.z) > 2 * l.radius.z) continue;
      const float mass =
          std::max(ellipsoid(p, l.center, l.radius) + 1.6f * who.mottle(p) + 0.8f * who.stool(p), d - 2.5f);
      if (mass > 3) continue;
      c.paint(i, mass, 74 + 9 * who.mottle(p));
      lesion_cover[i] += c.coverage(mass);
    }
  });

  // Lungs behind and beside the domes of the diaphragm, with a thin rim of it.
  c.each([&](point p, std::size_t i) {
    if (z < 70 || cavity[i] > 0) return;
    const float u = p.x / 118, v = (p.y + 8) / 76;
    const float dome = 196 - 104 * (u * u + v * v) - (p.x > 0 ? 8.0f : 0.0f);
    const float front = std::max(0.0f, -p.y - 20) * 0.9f;
    const float mediastinum = 26 - std::abs(p.x);
    const float lung = std::max({cavity[i] + 3, dome + front - z, mediastinum});
    c.paint(i, lung - 2.5f, 45);
    c.paint(i, lung, -850 + 60 * who.mottle(p) + 220 * std::clamp(4 * who.stool(p) - 3.0f, 0.0f, 1.0f));
  });

  // Bone: spine, ribs, pelvis; a dense rim around spongy marrow.
  const auto bone = [&](std::size_t i, point p, float d, float rim, float dense) {
    c.paint(i, d, dense);
    c.paint(i, d + rim, 190 + 30 * who.marrow(p));
  };
  const float vertebra = (z + 14) / 36;  // L3 is centred at z = 4
  const float within = vertebra - std::floor(vertebra);
  const bool sacrum = z < -86;
  c.each(-70, 70, 0, 110, [&](point p, std::size_t i) {
    if (sacrum) {
      const float down = -86 - z;
      bone(i, p, ellipsoid(p, {0, 48 + 0.42f * down, z}, {52 - 0.25f * down, 20, 1}), 1.8f, 560);
      c.paint(i, ellipsoid(p, {0, 58 + 0.42f * down, z}, {9, 5, 1}), 20);
      return;
    }
    const float waist = 1.8f * math::cos(2 * pi * (within - 0.5f));  // bodies are narrower in their middle
    const float body = ellipsoid(p, {0, 37, z}, {24 - waist, 18 - 0.7f * waist, 1});
    const float gap = (std::abs(within - 0.5f) - 0.37f) * 36;  // positive in the disc
    if (gap > 0) {
      c.paint(i, body - 0.5f, 82);
    }
    const float plate = std::max(body, gap);
    c.paint(i, plate, 520);
    c.paint(i, std::max(body + 1.6f, gap + 1.5f), 185 + 28 * who.marrow(p));
    // Arch: pedicles, laminae, transverse and spinous processes around the canal.
    const float level_arch = (within - 0.55f) * 36;
    float arch = 1e3f;
    for (const float s : {-1.0f, 1.0f}) {
      if (std::abs(level_arch) < 9) arch = std::min(arch, capsule(p, {s * 15, 48, z}, {s * 17, 62, z}, 4.5f, 5));
      arch = std::min(arch, capsule(p, {s * 17, 63, z}, {s * 5, 74, z}, 5.5f, 4.5f));
      if (std::abs(level_arch) < 6) arch = std::min(arch, capsule(p, {s * 18, 60, z}, {s * 42, 64, z}, 4.5f, 3));
    }
    if (level_arch < 7 && level_arch > -14) arch = std::min(arch, capsule(p, {0, 74, z}, {0, 93, z}, 4, 4.5f));
    bone(i, p, std::max(arch, std::max(-14 - level_arch, level_arch - 14)), 1.7f, 640);
    c.paint(i, ellipsoid(p, {0, 62, z}, {11, 9, 1}), -20);
    c.paint(i, ellipsoid(p, {0, 62, z}, {9, 7.5f, 1}), 28);
  });
  if (z > -10) {
    c.each([&](point p, std::size_t i) {
      // Ribs run inside the wall from the spine round to the front, descending on their way.
      if (cavity[i] < -8 || cavity[i] > 16) return;
      const float around = math::atan2(std::abs(p.x) / a, p.y / b) / pi;  // 0 at the back, 1 in front
      const float out = cavity[i] - 3.5f;
      for (int rib = 0; rib < 7; ++rib) {
        const float level0 = 112 + 31 * static_cast<float>(rib);
        const float end = rib == 0 ? 0.34f : rib == 1 ? 0.52f : 0.8f;
        if (around < 0.13f || around > end + 0.1f) continue;
        const float dz = (p.z - (level0 - 150 * (around - 0.12f))) * 0.78f;
        const float taper = 30 * std::max(0.0f, around - end);
        const float d = std::sqrt(out * out * 1.2f + dz * dz * 0.45f) - 5.2f + taper;
        if (d < 3) bone(i, p, d, 1.5f, 760);
      }
    });
  }
  if (pelvis)
    c.each([&](point p, std::size_t i) {
      if (wing[i] < 3) bone(i, p, wing[i], 1.9f, 720);
    });
}

// Reconstructed noise: correlated within the slice, without its lowest frequencies.
void add_noise(std::vector<float>& hu, int nx, int ny, float sigma, std::uint64_t seed) {
  dice random(seed);
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

  const patient who(options.seed);
  const int nx = static_cast<int>(g.extents[2]), ny = static_cast<int>(g.extents[1]);
  const auto slice_voxels = static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t slice = 0; slice < g.extents[0]; ++slice) {
    std::vector<float> hu(slice_voxels, 0), colon(slice_voxels, 0), lesions(slice_voxels, 0);
    for (const double part : {-0.25, 0.25}) {
      const double z = g.origin[0] + g.spacing[0] * (static_cast<double>(slice) + part);
      canvas c(g, static_cast<float>(z), who);
      paint_slice(c, who, colon, lesions);
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
