// SPDX-License-Identifier: Apache-2.0
// The bytes are a NIfTI file, compressed or not. What is read of it must be sound, and what the raw header says.
#include <bit>
#include <cmath>
#include <cstring>

#include "common/nifti.hpp"
#include "fuzz.hpp"

namespace {

using namespace suture;
using namespace suture::examples;
using fuzz::must_hold;

void check_grid(const grid& g) {
  for (int k = 0; k < 3; ++k) {
    must_hold(g.extents[k] > 0 && g.extents[k] <= 32767, "extents of an accepted file are in 1..32767");
    must_hold(std::isfinite(g.spacing[k]) && g.spacing[k] > 0,
              "the spacing of an accepted file is finite and positive");
    must_hold(std::isfinite(g.origin[k]), "the origin of an accepted file is finite");
    for (int j = 0; j < 3; ++j) {
      double product = 0;
      for (int i = 0; i < 3; ++i) product += g.direction[i][k] * g.direction[i][j];
      must_hold(std::abs(product - (j == k ? 1 : 0)) < 1e-2, "the directions of an accepted file are orthonormal");
    }
  }
}

// The header of a file that is not compressed, read here once more from the description of the format.
class raw_header {
public:
  explicit raw_header(const std::uint8_t* bytes) : bytes_(bytes) { swapped_ = integer<std::int32_t>(0) != 348; }

  template <class T>
  T integer(std::size_t at) const {
    return value<T>(at);
  }
  double real(std::size_t at) const { return static_cast<double>(value<float>(at)); }

private:
  template <class T>
  T value(std::size_t at) const {
    std::uint8_t raw[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) raw[i] = bytes_[at + (swapped_ ? sizeof(T) - 1 - i : i)];
    T result;
    std::memcpy(&result, raw, sizeof result);
    return result;
  }
  const std::uint8_t* bytes_;
  bool swapped_ = false;
};

void check_against(const raw_header& header, const grid& g) {
  const int dimensions = header.integer<std::int16_t>(40);
  const int units = header.integer<std::uint8_t>(123) & 7;
  const double to_mm = units == 1 ? 1000 : units == 3 ? 0.001 : 1;
  const bool by_sform = header.integer<std::int16_t>(254) > 0, by_qform = header.integer<std::int16_t>(252) > 0;
  const double offset = header.real(108), slope = header.real(112), intercept = header.real(116);
  must_hold(offset >= 352 && offset == std::floor(offset),
            "an accepted file's voxels begin at a whole byte from 352 on");
  must_hold(!(std::isfinite(slope) && slope != 0) || std::isfinite(intercept),
            "the intercept of an accepted file is finite where its slope counts");
  const int intent = header.integer<std::int16_t>(68);
  must_hold(intent < 1003 || (intent > 1009 && intent < 2002) || intent > 2004,
            "an accepted file's intent is that of one number for each voxel");
  for (int axis = 0; axis < 3; ++axis) {
    double stated = header.real(static_cast<std::size_t>(80 + 4 * axis));
    if (by_sform) {
      double square = 0;
      for (std::size_t row = 0; row < 3; ++row)
        square += std::pow(header.real(280 + 16 * row + 4 * static_cast<std::size_t>(axis)), 2);
      stated = std::sqrt(square);
    } else if (axis >= dimensions) {
      continue;  // not said
    }
    must_hold(std::isfinite(stated) && stated > 0, "an accepted file states a finite positive spacing");
    must_hold(std::abs(g.spacing[2 - axis] - stated * to_mm) <= 1e-4 * stated * to_mm, "the spacing is the one stated");
  }
  if (by_sform || !by_qform) return;
  double square = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    square += std::pow(header.real(256 + 4 * k), 2);
    must_hold(std::isfinite(header.real(268 + 4 * k)), "the offset of an accepted file is finite");
  }
  must_hold(std::isfinite(square) && square <= 1.01, "the quaternion of an accepted file is one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file file(data, size);
  fuzz::accepted([&] {
    const image_volume image = read_image(file.path());
    check_grid(grid_of(image));
    if (size >= 352 && !(data[0] == 0x1f && data[1] == 0x8b)) check_against(raw_header(data), grid_of(image));
    std::visit(
        [](const auto& v) {
          must_hold(v.voxels.size() == static_cast<std::size_t>(v.grid.voxels()), "there is a value for every voxel");
          for (const auto value : v.voxels)
            must_hold(std::isfinite(static_cast<double>(value)), "the voxels of an accepted file are finite");
        },
        image);
  });
  fuzz::accepted([&] {
    const label_volume labels = read_labels(file.path());
    check_grid(labels.grid);
    must_hold(labels.voxels.size() == static_cast<std::size_t>(labels.grid.voxels()),
              "there is a label for every voxel");
  });
  return 0;
}
