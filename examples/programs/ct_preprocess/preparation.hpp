// SPDX-License-Identifier: Apache-2.0
// A case from its files to what is resampled: read, oriented, the body found, the crop to it placed.
#pragma once

#include "cohort.hpp"
#include "common/volume.hpp"
#include "suture/fit/fingerprint.hpp"
#include "suture/image/view.hpp"

namespace suture::examples {

struct preparation {
  std::string orientation = "LPS";
  double body_threshold = -300;     // HU
  std::int64_t opening_radius = 2;  // of the body mask, voxels
  std::int64_t margin = 0;          // of the crop, voxels
  int threads = 0;
};

struct prepared_case {
  image_volume image;       // the whole case, oriented
  label_volume labels;      // without voxels where the case has none
  label_volume body;        // 1 in the body
  extent3 start{}, size{};  // the crop: the box of the body and of all labels, and the margin
};

// Throws suture::error naming the file and the reason: those of read_image and read_labels, labels of another grid, no
// body.
prepared_case prepare_case(const case_files& files, const preparation& how);

// The part of a volume from `start`, in its physical place.
template <class T>
view<const T> region(const volume<T>& whole, const extent3& start, const extent3& size) {
  view<const T> part = contiguous(whole.voxels.data(), whole.grid);
  part.data += linear_index(whole.grid.extents, start[0], start[1], start[2]);
  part.grid.origin = whole.grid.index_to_physical()(vec_cast<double>(start));
  part.grid.extents = size;
  return part;
}

// The cohort's statistics of one case, cropped: its foreground are the labels above 0, without labels the body.
cohort_fingerprint fingerprint_of(const std::string& name, const prepared_case& prepared, int threads);

}  // namespace suture::examples
