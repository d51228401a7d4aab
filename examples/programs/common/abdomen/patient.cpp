// SPDX-License-Identifier: Apache-2.0
#include "patient.hpp"

#include "suture/math/elementary.hpp"

namespace suture::examples::abdomen {
namespace {

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

}  // namespace

patient::patient(dice random)
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

}  // namespace suture::examples::abdomen
