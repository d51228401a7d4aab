// SPDX-License-Identifier: Apache-2.0
// Single-file NIfTI-1 (.nii, .nii.gz) in and out. In the file positions are RAS and the first axis is fastest;
// in memory positions are LPS and every triple is (z, y, x). The sform is used where the file has one, else the qform,
// else the spacing alone (methods 3, 2 and 1 of the NIfTI-1 standard).
#pragma once

#include <filesystem>

#include "volume.hpp"

namespace suture::examples {

// Any integer or real voxel type, either byte order, scl_slope and scl_inter applied (a slope that is 0 or not finite
// means none). int16 if every value fits, else float. A file of two dimensions is one slice, as thick as pixdim[3]
// says, or 1 where that is 0. Memory in use never exceeds what the file really holds.
//
// Nothing is repaired. Throws suture::error naming the file, and field and value where it is the header:
// - no regular file, unreadable, shorter than it says, a compressed one without its checksum or with another;
// - NIfTI-2, a pair of files (.hdr and .img), ANALYZE;
// - extents that are not positive, more than one volume, voxels that are no single integer or real number of at most 64
//   bits (complex, RGB), bitpix of another type, intents of vectors, matrices, colors, meshes or coefficients;
// - vox_offset below 352, not whole or beyond the file; scl_inter not finite beside a slope that counts;
// - in the fields by which voxels are placed, and no others: a spacing that is not positive, finite and normal, numbers
//   that are not finite, a quaternion beyond a rotation, a singular or sheared sform, codes and units that do not
//   exist;
// - voxels that no finite float holds.
image_volume read_image(const std::filesystem::path& path);

// As read_image, for label maps: every voxel must be a whole number in 0..255.
label_volume read_labels(const std::filesystem::path& path);

// As read_labels; the map must lie where the image lies, whose grid it gets, since both are equal up to rounding in the
// files. Throws suture::error naming both where it does not.
label_volume read_labels_of(const grid& image, const std::string& image_name, const std::filesystem::path& path);

// Writes under a temporary name and renames, so that a file is there whole or not at all. sform and qform agree.
// The ending .gz decides on compression. Throws suture::error if the file cannot be written.
void write_nifti(const std::filesystem::path& path, const volume<std::uint8_t>& image);
void write_nifti(const std::filesystem::path& path, const volume<std::int16_t>& image);
void write_nifti(const std::filesystem::path& path, const volume<float>& image);

}  // namespace suture::examples
