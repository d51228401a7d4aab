// SPDX-License-Identifier: Apache-2.0
#include "tissue.hpp"

#include "common/histology_phantom.hpp"
#include "suture/math/elementary.hpp"

namespace suture::examples::histology {
namespace {

struct nucleus {
  point center, axis;  // the unit vector of its long axis
  float half_length, half_width;
  float h, e;       // concentrations
  float vesicular;  // how much paler the middle is than the rim, 0..1
};

void paint_nucleus(canvas& c, const nucleus& n, const noise& chromatin, float texture) {
  c.around(n.center, n.half_length, [&](point p, std::size_t i) {
    const point d = p - n.center;
    const float l = (d.y * n.axis.y + d.x * n.axis.x) / n.half_length;
    const float w = (d.y * n.axis.x - d.x * n.axis.y) / n.half_width;
    const float r = std::sqrt(l * l + w * w);
    const float cover = c.coverage((r - 1) * n.half_width);
    if (cover <= 0) return;
    const float rim = step(0.45f, 0.95f, r);
    const float clumps = texture * chromatin(p);
    const float h = n.h * (1 - n.vesicular * 0.45f * (1 - rim) + 0.18f * rim * n.vesicular + 0.32f * clumps);
    c.mix(i, cover, h, n.e);
    if (cover >= 0.5f) c.label[i] = label_nucleus;
  });
}

struct tissue_painter {
  canvas& c;
  std::uint64_t seed;
  const fields& f;
  const noise &grain, &ragged, &chromatin;
  float texture;  // how much of the chromatin can be resolved

  // Fat cells: a jittered honeycomb of empty rooms with thin walls.
  void paint_fat() const {
    constexpr float spacing = 58;
    const area where = c.covered().grown(2 * spacing);
    const auto cell = [&](float v) { return static_cast<std::int64_t>(std::floor(v / spacing)); };
    const std::int64_t y0 = cell(where.top) - 1, x0 = cell(where.left) - 1;
    const std::int64_t rows = cell(where.bottom) - y0 + 2, columns = cell(where.right) - x0 + 2;
    std::vector<point> centers;
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        draws random = cell_draws(seed, fat, y0 + y, x0 + x);
        centers.push_back(in_cell(y0 + y, x0 + x, spacing, 0.36f, random));
      }
    c.each([&](point p, std::size_t i) {
      if (c.label[i] == 0) return;
      const float fatty = step(0, 0.10f, f.fatty(p) + 0.08f * f.detail(p));
      if (fatty <= 0) return;
      float first = 1e9f, second = 1e9f;
      const std::int64_t cy = cell(p.y) - y0, cx = cell(p.x) - x0;
      for (std::int64_t y = cy - 1; y <= cy + 1; ++y)
        for (std::int64_t x = cx - 1; x <= cx + 1; ++x) {
          const float d = length(p - centers[static_cast<std::size_t>(y * columns + x)]);
          second = std::min(second, std::max(first, d));
          first = std::min(first, d);
        }
      const float room = 1 - c.coverage(1.1f - 0.5f * (second - first));
      c.mix(i, fatty * (1 - room), 0.012f, 0.015f);
      if (room > 0) c.mix(i, fatty * room, 0.07f, 0.30f);
    });
  }

  void paint_stromal_cells() const {
    // Lymphoid follicles: crowds of lymphocytes.
    constexpr float follicle_spacing = 900;
    struct follicle {
      point center;
      float radius;
    };
    std::vector<follicle> crowds;
    each_cell(c.covered(), follicle_spacing, 300, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(seed, follicles, cy, cx);
      const bool there = random.bernoulli(0.55f);
      const point p = in_cell(cy, cx, follicle_spacing, 0.35f, random);
      const float radius = random.uniform(70, 130);
      if (there && f.depth(p) > 60 && f.fatty(p) < 0) crowds.push_back({p, radius});
    });

    constexpr float fibroblast_spacing = 17;
    each_cell(c.covered(), fibroblast_spacing, 24, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(seed, fibroblasts, cy, cx);
      const point p = in_cell(cy, cx, fibroblast_spacing, 0.48f, random);
      const float chance = random.uniform(0, 1), long_half = random.uniform(4.5f, 9),
                  wide_half = random.uniform(1.1f, 1.9f);
      const float h = random.uniform(0.9f, 1.45f), tilt = random.uniform(-0.35f, 0.35f);
      if (!c.covered().meets(p, 12) || f.depth(p) < 3) return;
      if (chance > 0.46f - 0.40f * step(-0.05f, 0.1f, f.fatty(p))) return;
      const point d = f.along(p);
      const point axis{d.y + tilt * d.x, d.x - tilt * d.y};
      const float norm = length(axis);
      paint_nucleus(c, {p, axis * (1 / norm), long_half, wide_half, h, 0.22f, 0.2f}, chromatin, texture);
    });

    constexpr float spacing = 6.7f;
    each_cell(c.covered(), spacing, 12, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(seed, lymphocytes, cy, cx);
      const point p = in_cell(cy, cx, spacing, 0.42f, random);
      const float chance = random.uniform(0, 1), radius = random.uniform(2.5f, 3.4f), h = random.uniform(1.3f, 1.8f);
      const float squeeze = random.uniform(0.82f, 1), turn = random.uniform(0, 6.2831853f);
      const bool plasma = random.bernoulli(0.25f);
      if (!c.covered().meets(p, 9) || f.depth(p) < 3) return;
      float crowd = 0;
      for (const follicle& k : crowds)
        crowd = std::max(crowd, step(k.radius * 1.15f, k.radius * 0.8f, length(p - k.center) + 14 * f.detail(p)));
      const float sparse =
          0.025f + 0.20f * step(0.15f, 0.9f, f.density(p)) + 0.10f * step(-0.05f, 0.2f, f.glandular(p));
      if (chance > std::max(0.92f * crowd, sparse * (1 - step(-0.05f, 0.05f, f.fatty(p))))) return;
      const point axis{math::cos(turn), math::sin(turn)};
      if (plasma && crowd < 0.5f) {
        // A plasma cell: its nucleus off center in purple cytoplasm.
        const point body = p + axis * 2.4f;
        c.around(body, 5.2f,
                 [&](point q, std::size_t i) { c.mix(i, 0.8f * c.coverage(length(q - body) - 5.0f), 0.30f, 0.42f); });
      }
      paint_nucleus(c, {p, axis, radius, radius * squeeze, h, 0.30f, 0.25f}, chromatin, 0.7f * texture);
    });
  }

  // Small vessels: a wall, flat nuclei along it, red cells inside.
  void paint_vessels() const {
    constexpr float spacing = 330;
    each_cell(c.covered(), spacing, 170, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(seed, vessels, cy, cx);
      const bool there = random.bernoulli(0.6f);
      const point center = in_cell(cy, cx, spacing, 0.4f, random);
      const float radius = random.uniform(9, 26), longer = random.uniform(1, 1.9f),
                  turn = random.uniform(0, 3.14159265f);
      const float fill = random.uniform(0.2f, 0.95f), phase = random.uniform(0, 1);
      const float reach = radius * longer + 12;
      if (!there || !c.covered().meets(center, reach) || f.depth(center) < reach || f.glandular(center) > 0.25f) return;
      const point axis{math::cos(turn), math::sin(turn)};
      const float wall = 2.5f + 0.12f * radius;
      // 1 at the inner border, by the angle-dependent radius.
      const auto inside = [&](point p) {
        const point d = p - center;
        const float l = (d.y * axis.y + d.x * axis.x) / longer, w = d.y * axis.x - d.x * axis.y;
        return std::sqrt(l * l + w * w) - radius * (1 + 0.10f * f.detail(p));
      };
      c.around(center, reach, [&](point p, std::size_t i) {
        const float d = inside(p);
        c.mix(i, c.coverage(d - wall), 0.10f, 0.62f);
        c.mix(i, c.coverage(d), 0.012f, 0.04f);
      });
      constexpr float red = 5.6f;
      each_cell({center.y - reach, center.x - reach, center.y + reach, center.x + reach}, red, 0,
                [&](std::int64_t ry, std::int64_t rx) {
                  draws cell = cell_draws(seed, blood, ry, rx);
                  const point p = in_cell(ry, rx, red, 0.3f, cell);
                  const float size = cell.uniform(2.4f, 3.1f), e = cell.uniform(0.75f, 1.05f);
                  if (!cell.bernoulli(fill) || inside(p) > -size) return;
                  c.around(p, size, [&](point q, std::size_t i) {
                    const float r = length(q - p);
                    c.mix(i, 0.92f * c.coverage(r - size), 0.02f, e * (0.82f + 0.18f * step(0, size, r)));
                  });
                });
      const int count = std::max(4, static_cast<int>(radius * longer * 0.32f));
      for (int k = 0; k < count; ++k) {
        const float a =
            6.2831853f * (static_cast<float>(k) + phase + random.uniform(-0.3f, 0.3f)) / static_cast<float>(count);
        const float cosine = math::cos(a), sine = math::sin(a);
        const float l = longer * (radius + 0.5f * wall) * cosine, w = (radius + 0.5f * wall) * sine;
        const point p{center.y + l * axis.y + w * axis.x, center.x + l * axis.x - w * axis.y};
        const point t{-longer * sine * axis.y + cosine * axis.x, -longer * sine * axis.x - cosine * axis.y};
        paint_nucleus(c, {p, t * (1 / length(t)), random.uniform(4, 6.5f), 1.3f, 1.05f, 0.25f, 0.1f}, chromatin,
                      texture);
      }
    });
  }

  // Glands cut across: columnar epithelium around a lumen, nuclei at the base, some goblet cells.
  void paint_glands() const {
    constexpr float spacing = 92;
    struct gland {
      point center;
      float radius, longer, priority;
    };
    const auto gland_of = [&](draws& random, std::int64_t cy, std::int64_t cx) {
      const point center = in_cell(cy, cx, spacing, 0.46f, random);
      const float radius = random.uniform(32, 52), longer = random.uniform(1, 1.35f);
      return gland{center, radius, longer, random.uniform(0, 1)};
    };
    each_cell(c.covered(), spacing, 110, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(seed, glands, cy, cx);
      const gland drawn = gland_of(random, cy, cx);
      const point center = drawn.center;
      const float radius = drawn.radius, longer = drawn.longer;
      const float turn = random.uniform(0, 3.14159265f);
      const float goblets = random.uniform(0, 0.75f), tint = random.uniform(0.92f, 1.12f);
      const float crowding = random.uniform(0.15f, 0.6f);
      const float tall = random.uniform(20, 28), content = random.uniform(0, 1), shift = random.uniform(0, 50);
      const float reach = radius * longer * 1.25f + 6;
      if (!c.covered().meets(center, reach) || f.depth(center) < 0.8f * reach || f.glandular(center) < 0) return;
      // Of glands that would overlap the one drawn first in rank stays.
      for (std::int64_t y = cy - 2; y <= cy + 2; ++y)
        for (std::int64_t x = cx - 2; x <= cx + 2; ++x) {
          if (y == cy && x == cx) continue;
          draws other_random = cell_draws(seed, glands, y, x);
          const gland other = gland_of(other_random, y, x);
          const float apart = radius * std::sqrt(longer) + other.radius * std::sqrt(other.longer);
          if (other.priority < drawn.priority && length(other.center - center) < apart) return;
        }
      const point axis{math::cos(turn), math::sin(turn)};
      const noise shape(seed, gland_shape, {shift - 2, shift - 2, shift + 2, shift + 2}, 0.8f);
      const auto local = [&](point p) {
        const point d = p - center;
        return point{d.y * axis.x - d.x * axis.y, (d.y * axis.y + d.x * axis.x) / longer};
      };
      const auto border = [&](point direction) {
        return radius * (1 + 0.13f * shape({shift + direction.y, shift + direction.x}));
      };
      const float height = std::min(tall, 0.72f * radius);
      c.around(center, reach, [&](point p, std::size_t i) {
        const point q = local(p);
        const float r = length(q);
        const point direction = q * (1 / std::max(r, 1e-3f));
        const float outer = r - border(direction);
        const float membrane = c.coverage(outer - 1.6f);
        if (membrane <= 0) return;
        c.mix(i, 0.75f * membrane, 0.07f, 0.55f);
        const float cell = c.coverage(outer);
        const float depth = std::clamp(-outer / height, 0.0f, 1.3f);
        const float apical = step(0.45f, 0.95f, depth);
        c.mix(i, cell, (0.26f - 0.13f * apical) * tint + 0.035f * grain(p),
              (0.44f - 0.06f * apical) * tint + 0.05f * grain(p));
        // A brush border, then the lumen with a little mucus.
        const float wavy = 1.6f * ragged(p);
        const float lumen = c.coverage(outer + height + wavy);
        const float brush = c.coverage(outer + height + wavy - 1.3f);
        c.mix(i, 0.6f * brush, 0.12f, 0.62f);
        const float mucus = content > 0.6f ? step(-0.9f, 1.5f, ragged(p) + 0.8f * f.detail(p)) : 0.0f;
        c.mix(i, lumen, 0.010f + 0.09f * mucus, 0.012f + 0.13f * mucus);
        if (cell >= 0.5f) c.label[i] = label_gland;
      });
      const int count = static_cast<int>(6.2831853f * radius * 0.5f * (1 + longer) / 6.6f);
      // Cells in turn: mucin or cytoplasm first, nuclei on top.
      struct place {
        point at, axis;
      };
      const auto placed = [&](float a, float depth) {
        const point direction{math::sin(a), math::cos(a)};
        const float r = border(direction) - depth;
        const point q = direction * r;
        const float l = q.x * longer;
        const point at{center.y + q.y * axis.x + l * axis.y, center.x - q.y * axis.y + l * axis.x};
        const point out{direction.y * axis.x + direction.x * axis.y * longer,
                        direction.x * axis.x * longer - direction.y * axis.y};
        return place{at, out * (1 / length(out))};
      };
      for (int k = 0; k < count; ++k) {
        const float a =
            6.2831853f * (static_cast<float>(k) + random.uniform(-0.25f, 0.25f)) / static_cast<float>(count);
        const float size = random.uniform(3.6f, 4.9f), depth = random.uniform(0.56f, 0.70f);
        if (!random.bernoulli(goblets * 0.55f)) continue;
        const place goblet = placed(a, height * depth);
        c.around(goblet.at, size * 1.6f, [&](point p, std::size_t i) {
          const point d = p - goblet.at;
          const float l = (d.y * goblet.axis.y + d.x * goblet.axis.x) / 1.55f;
          const float w = d.y * goblet.axis.x - d.x * goblet.axis.y;
          const float outside = std::sqrt(l * l + w * w) - size;
          c.mix(i, c.coverage(outside), 0.13f + 0.05f * grain(p), 0.06f);
        });
      }
      for (int k = 0; k < count; ++k) {
        const float a = 6.2831853f * (static_cast<float>(k) + random.uniform(-0.3f, 0.3f)) / static_cast<float>(count);
        const bool second_row = random.bernoulli(crowding);
        const float depth = random.uniform(6.2f, 8.8f) + (second_row ? random.uniform(3, 7) : 0);
        const float half = random.uniform(4.3f, 6.3f), wide = random.uniform(2.2f, 3.0f),
                    h = random.uniform(0.85f, 1.45f);
        const float lean = random.uniform(-0.18f, 0.18f), vesicular = random.uniform(0.3f, 0.9f);
        const place n = placed(a, depth);
        const point tilted{n.axis.y + lean * n.axis.x, n.axis.x - lean * n.axis.y};
        paint_nucleus(c, {n.at, tilted * (1 / length(tilted)), half, wide, h * tint, 0.30f, vesicular}, chromatin,
                      texture);
      }
    });
  }
};

}  // namespace

void paint_tissue(canvas& c, std::uint64_t seed, float height, float width) {
  const area where = c.covered();
  const area wide = where.grown(260);
  const fields f(seed, wide, height, width);
  const float px = c.pixel();
  // In the coordinates of the fibers: across, and along x or y.
  const area fibers{wide.top + 0.35f * wide.left - 180, wide.left, wide.bottom + 0.35f * wide.right + 180, wide.right};
  const area others{wide.left - 0.45f * wide.bottom - 180, wide.top, wide.right - 0.45f * wide.top + 180, wide.bottom};
  const noise fiber(seed, fiber_noise, fibers, std::max(5.2f, px), 60);
  const noise crossing(seed, crossing_noise, others, std::max(5.2f, px), 52);
  const noise strand(seed, strand_noise, fibers, std::max(1.9f, px), 26);
  const noise ragged(seed, lumen_noise, where.grown(8), std::max(9.0f, px));
  const noise grain(seed, grain_noise, where.grown(8), std::max(1.6f, px));
  const noise chromatin(seed, chromatin_noise, where.grown(8), std::max(1.25f, px));
  const float texture = px < 1.2f ? 1.0f : 0.0f;

  std::vector<float> cover(c.label.size());
  c.each([&](point p, std::size_t i) {
    const float depth = f.depth(p);
    cover[i] = c.coverage(-depth * 0.5f);
    if (cover[i] <= 0) return;
    // Bundles of collagen, parted by clefts; a second set crosses them here and there.
    const float mix = f.second(p);
    float bundle = 0, fine = 0;
    if (mix < 1) {
      const float v = f.across(p);
      bundle = fiber({v, p.x});
      fine = strand({v, p.x});
    }
    if (mix > 0) {
      const float other = crossing({f.across_second(p), p.y});
      bundle += mix * (other - bundle);
      fine *= 1 - mix;
    }
    const float dense = 0.5f + 0.5f * f.density(p);
    const float loose = step(-0.1f, 0.25f, f.glandular(p));  // the connective tissue between glands
    float e = 0.43f - 0.10f * loose + 0.13f * bundle + 0.06f * fine + 0.07f * dense + 0.05f * grain(p);
    const float cleft =
        step(-0.48f, -1.0f, bundle + 0.25f * fine - 0.30f * dense + 0.20f * f.curl(p)) * (0.9f - 0.25f * loose);
    e *= 1 - 0.9f * cleft;
    c.h[i] = (0.05f + 0.03f * dense + 0.03f * loose) * (1 - cleft);
    c.e[i] = std::max(0.03f, e);
    c.label[i] = cover[i] >= 0.5f ? label_stroma : std::uint8_t{0};
  });
  const tissue_painter painter{c, seed, f, grain, ragged, chromatin, texture};
  painter.paint_fat();
  painter.paint_stromal_cells();
  painter.paint_vessels();
  painter.paint_glands();
  for (std::size_t i = 0; i < cover.size(); ++i) {
    c.h[i] *= cover[i];
    c.e[i] *= cover[i];
    if (cover[i] < 0.5f) c.label[i] = 0;
  }
}

}  // namespace suture::examples::histology
