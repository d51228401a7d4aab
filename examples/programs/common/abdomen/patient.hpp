// SPDX-License-Identifier: Apache-2.0
// What is drawn once for a patient: the course of the bowel, its lesions, vessels, and the fields of every texture.
#pragma once

#include <vector>

#include "shapes.hpp"

namespace suture::examples::abdomen {

struct tube_point {
  point at;
  float radius, level;  // level: gas lies in front of this y
};
using tube = std::vector<tube_point>;

struct lesion {
  point center, radius;
};

struct vessel {
  point a, b;
  float ra, rb;
};

struct patient {
  tube colon, bowel;
  std::vector<lesion> lesions;
  std::vector<vessel> liver_vessels, mesentery;
  waves bend_x, bend_y, fat, stool, marrow, mottle;

  explicit patient(std::uint64_t seed) : patient(dice(seed * 0x9e3779b97f4a7c15u + 1)) {}

private:
  explicit patient(dice random);
};

}  // namespace suture::examples::abdomen
