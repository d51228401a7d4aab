// SPDX-License-Identifier: Apache-2.0
#include "organs.hpp"

namespace suture::examples::abdomen {
namespace {

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

// Organs one over the other, in the order of paint().
struct slice_painter {
  canvas& c;
  const patient& who;
  std::vector<float>&colon_cover, &lesion_cover;
  float z = c.z();
  float a = body_axes(z)[0], b = body_axes(z)[1];
  float hips = std::clamp((-55 - z) / 30, 0.0f, 1.0f);
  bool pelvis = z < -46;
  // Signed distances to the inside of the muscle wall and to the wings of the pelvis, where there are any.
  std::vector<float> cavity = std::vector<float>(c.hu.size());
  std::vector<float> wing = std::vector<float>(pelvis ? c.hu.size() : 0, 1e3f);

  void paint() {
    couch();
    wall();
    muscles();
    if (pelvis) pelvic_organs();
    upper_organs();
    great_vessels();
    bowel();
    lungs();
    spine();
    if (z > -10) ribs();
    if (pelvis) pelvic_bone();
  }

  // Couch: a shallow curved shell filled with foam, not bent with the patient.
  void couch() {
    c.each_straight([&](point p, std::size_t i) {
      const float upper = 122 - p.x * p.x * 0.0011f;
      const float couch = std::max({upper - p.y, p.y - upper - 26, std::abs(p.x) - 205});
      c.paint(i, couch, 20);
      c.paint(i, couch + 1.8f, -935);
    });
  }

  // Skin, fat, the muscles of the wall.
  void wall() {
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
  }

  // Muscles beside the spine, over the pelvis and in front of it.
  void muscles() {
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
  }

  // The wings of the pelvis with the iliac muscle on their inside; bowel stays clear of both.
  void pelvic_organs() {
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

  // Liver, spleen, stomach, pancreas, gallbladder, kidneys.
  void upper_organs() {
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
      const float stomach = inside(
          blend(ellipsoid(p, {56, -22, 112}, {42, 42, 50}), ellipsoid(p, {22, -40, 74}, {34, 24, 20}), 18), i, 3);
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
  }

  // Great vessels; the aorta divides at L4, the vena cava a little lower.
  void great_vessels() {
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
      c.mix(i, 0.9f * c.coverage(std::abs(aorta + 0.6f) - 0.5f) * std::clamp(who.marrow(p) * 4 - 2.2f, 0.0f, 1.0f),
            520);
    });
    for (const vessel& v : who.mesentery) {
      if (std::min(v.a.z, v.b.z) > z + 8 || std::max(v.a.z, v.b.z) < z - 8) continue;
      c.each(std::min(v.a.x, v.b.x) - 14, std::max(v.a.x, v.b.x) + 14, std::min(v.a.y, v.b.y) - 14,
             std::max(v.a.y, v.b.y) + 14, [&](point p, std::size_t i) {
               if (cavity[i] < -6) c.paint(i, capsule(p, v.a, v.b, 0.7f * v.ra, 0.7f * v.rb), 145);
             });
    }
  }

  // Bowel. The distance to a tube is that to its nearest ball; the nearest ball also says where its fluid stands.
  void bowel() {
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
  }

  // Lungs behind and beside the domes of the diaphragm, with a thin rim of it.
  void lungs() {
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
  }

  // Bone: a dense rim around spongy marrow.
  void bone(std::size_t i, point p, float d, float rim, float dense) {
    c.paint(i, d, dense);
    c.paint(i, d + rim, 190 + 30 * who.marrow(p));
  }

  void spine() {
    const float vertebra = (z + 14) / 36;  // L3 is centered at z = 4
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
  }

  void ribs() {
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

  void pelvic_bone() {
    c.each([&](point p, std::size_t i) {
      if (wing[i] < 3) bone(i, p, wing[i], 1.9f, 720);
    });
  }
};

}  // namespace

void paint_slice(canvas& c, const patient& who, std::vector<float>& colon_cover, std::vector<float>& lesion_cover) {
  slice_painter{c, who, colon_cover, lesion_cover}.paint();
}

}  // namespace suture::examples::abdomen
