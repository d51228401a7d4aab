// SPDX-License-Identifier: Apache-2.0
// Single-file NIfTI-1 (.nii, .nii.gz) in and out. In the file positions are RAS and the first axis is fastest;
// in memory positions are LPS and every triple is (z, y, x). The sform is used where the file has one, else the qform,
// else the spacing alone (methods 3, 2 and 1 of the NIfTI-1 standard).
#pragma once

#include <filesystem>

#include "volume.hpp"

namespace suture::examples {

// Any integer or real voxel type, either byte order, scl_slope and scl_inter applied. int16 if every value fits, else
// float. Throws suture::error naming the file and the reason: missing or unreadable file, wrong magic, extents that are
// not positive, more than one time point, an unsupported voxel type, directions that are not orthonormal, truncated or
// damaged voxels, voxels that no finite float holds. Memory in use never exceeds what the file really holds.
image_volume read_image(const std::filesystem::path& path);

// As read_image, for label maps: every voxel must be a whole number in 0..255.
label_volume read_labels(const std::filesystem::path& path);

// Writes under a temporary name and renames, so that a file is there whole or not at all. sform and qform agree.
// The ending .gz decides on compression. Throws suture::error if the file cannot be written.
void write_nifti(const std::filesystem::path& path, const volume<std::uint8_t>& image);
void write_nifti(const std::filesystem::path& path, const volume<std::int16_t>& image);
void write_nifti(const std::filesystem::path& path, const volume<float>& image);

}  // namespace suture::examples
