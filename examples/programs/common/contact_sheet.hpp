// SPDX-License-Identifier: Apache-2.0
// A PNG to look at what a pipeline did: for every sample three planes of the source and three of the result, in true
// proportions and radiological orientation (the patient's right on the left of the picture, front or head at the top),
// with the outlines of the labels. Above each picture stands where its plane lies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "volume.hpp"

namespace suture::examples {

// The values shown black and white.
struct gray_window {
  double black = -160, white = 240;  // of soft tissue, in HU
  float operator()(double value) const { return static_cast<float>((value - black) / (white - black)); }
  void apply(volume<float>& image) const {
    for (float& v : image.voxels) v = (*this)(static_cast<double>(v));
  }
};
// "window -160 .. 240 HU".
std::string words_of(const gray_window& shown, const std::string& unit);
// The values that this share of the voxels lies below.
gray_window percentiles_of(std::vector<float> values, double black = 0.01, double white = 0.995);

struct panel {
  volume<float> image;  // 0 is shown black, 1 white
  label_volume labels;  // of the same grid
  label_volume body{};  // the same, or nothing: a mask, outlined in white dashes
};

// The planes go through the rarest label of `after`, else through its middle; those of `before` lie where they lie, in
// millimeters, on whatever grid it has.
struct sheet_row {
  std::string caption;
  panel before, after;
  // The scan that a patch was cut from: slices of `before` are then counted in it, and `after`, which may be turned,
  // has no place in the patient.
  std::optional<grid> scan{};
};

struct contact_sheet {
  std::string title;                     // modality, window and what is shown
  std::vector<std::string> label_names;  // of labels 1, 2, ...; the legend says the numbers of all others
  std::vector<sheet_row> rows;
  std::string before = "the scan", after = "the result";  // what each side shows
  bool nested = false;  // every label lies within the one before it: 2 is a part of 1, 3 of 2
  double tile = 224;    // pixels of the longest side of all pictures
};

// Throws suture::error if the file cannot be written or a row does not fit together.
void write_contact_sheet(const std::filesystem::path& path, const contact_sheet& sheet);

// What a scan looks like on another grid: linear interpolation, `outside` beyond the scan.
template <class T>
volume<float> shown_on(const volume<T>& source, const grid& target, float outside);
// The label with the largest sum of linear weights, ties to the lowest; 0 beyond the scan.
label_volume labels_on(const label_volume& source, const grid& target);

extern template volume<float> shown_on(const volume<std::int16_t>&, const grid&, float);
extern template volume<float> shown_on(const volume<float>&, const grid&, float);

}  // namespace suture::examples
