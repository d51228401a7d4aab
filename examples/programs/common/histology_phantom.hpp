// SPDX-License-Identifier: Apache-2.0
// A synthetic H&E slide with ground truth, so that everything can be tried without patient data: glands and their
// nuclei in a fibrous stroma with lymphocytes, vessels and fat, on glass with a pen mark, a fold and an area out of
// focus. Made from a seed and from stain vectors by Beer-Lambert's law, so that what a stain method should find is
// known. Any region of any level is computed when it is read, and is the same whichever region it is part of.
#pragma once

#include "slide.hpp"

namespace suture::examples {

struct histology_options {
  std::uint64_t seed = 1;
  std::int64_t height = 6144, width = 8192;  // of level 0; levels of 1/4 and 1/16 follow
  double mpp = 0.5;
  // Absorption of red, green and blue by one unit of stain (natural logarithm), and how strongly the slide is stained.
  std::array<float, 3> hematoxylin{0.61f, 0.72f, 0.33f};
  std::array<float, 3> eosin{0.10f, 0.87f, 0.48f};
  float hematoxylin_strength = 1, eosin_strength = 1;
  std::array<float, 3> light{242, 241, 243};  // what the glass lets through
  float noise = 1.5f;                         // standard deviation, gray levels
  int jpeg_quality = 85;                      // 1..100 as in libjpeg, in blocks of 8 x 8 pixels; 0: not compressed
};

// Labels of the phantom: glass 0, and
inline constexpr std::uint8_t label_stroma = 1;  // and everything else that is tissue
inline constexpr std::uint8_t label_gland = 2;   // epithelium and lumen
inline constexpr std::uint8_t label_nucleus = 3;

// Throws suture::error for options that make no slide: no pixels, an mpp that is not positive, a negative strength,
// noise or quality.
std::unique_ptr<slide> make_histology_phantom(const histology_options& options);

}  // namespace suture::examples
