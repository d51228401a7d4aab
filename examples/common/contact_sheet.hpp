// SPDX-License-Identifier: Apache-2.0
// A PNG to look at what a pipeline did: for every sample three planes of the source and three of the result, in true
// proportions and radiological orientation (the patient's right on the left of the picture, front or head at the top),
// with the outlines of the labels.
#pragma once

#include <filesystem>
#include <string>

#include "volume.hpp"

namespace suture::examples {

struct panel {
  volume<float> image;  // 0 is shown black, 1 white
  label_volume labels;  // of the same grid
  label_volume body{};  // the same, or nothing: a mask, outlined in violet
};

// The planes go through the rarest label of `after`, else through its middle; those of `before` lie where they lie, in
// millimeters, on whatever grid it has.
struct sheet_row {
  std::string caption;
  panel before, after;
};

struct contact_sheet {
  std::string title;
  std::vector<std::string> label_names;  // of labels 1, 2, ...; where there are none the legend says their numbers
  std::vector<sheet_row> rows;
  double tile = 224;  // pixels of the longest side of all pictures
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
