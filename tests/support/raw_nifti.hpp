// SPDX-License-Identifier: Apache-2.0
// A NIfTI-1 file by the byte offsets of the standard: 3 x 2 x 2 voxels of int16, sform with spacing 1, 2, 3.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace support {

// The multi-byte fields of its header: offset, width, count.
inline constexpr std::size_t nifti_fields[][3] = {{0, 4, 1},   {32, 4, 1},  {36, 2, 1},  {40, 2, 8},  {56, 4, 3},
                                                  {68, 2, 4},  {76, 4, 8},  {108, 4, 3}, {120, 2, 1}, {124, 4, 4},
                                                  {140, 4, 2}, {252, 2, 2}, {256, 4, 6}, {280, 4, 12}};

struct raw_nifti {
  std::vector<unsigned char> bytes = std::vector<unsigned char>(352, 0);

  template <class T>
  raw_nifti& put(std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    return *this;
  }
  template <class T>
  void append(std::initializer_list<T> values) {
    for (const T v : values) {
      bytes.resize(bytes.size() + sizeof v);
      std::memcpy(bytes.data() + bytes.size() - sizeof v, &v, sizeof v);
    }
  }

  raw_nifti() {
    put<std::int32_t>(0, 348);
    const std::int16_t dim[8] = {3, 3, 2, 2, 1, 1, 1, 1};
    for (std::size_t i = 0; i < 8; ++i) put(40 + 2 * i, dim[i]);
    put<std::int16_t>(70, 4);   // datatype int16
    put<std::int16_t>(72, 16);  // bits
    const float pixdim[4] = {1, 1, 2, 3};
    for (std::size_t i = 0; i < 4; ++i) put(76 + 4 * i, pixdim[i]);
    put<float>(108, 352);  // vox_offset
    bytes[123] = 2;        // millimeters
    put<std::int16_t>(254, 1);
    const float sform[12] = {1, 0, 0, -10, 0, 2, 0, 20, 0, 0, 3, 30};
    for (std::size_t i = 0; i < 12; ++i) put(280 + 4 * i, sform[i]);
    std::memcpy(bytes.data() + 344, "n+1", 4);
  }
  raw_nifti& with_voxels() {
    append<std::int16_t>({-1024, -1, 0, 1, 2, 3, 4, 5, 6, 7, 300, 3071});
    return *this;
  }
  // In the other byte order, voxels of two bytes too.
  raw_nifti swapped() const {
    raw_nifti result = *this;
    for (const auto& [offset, width, count] : nifti_fields)
      for (std::size_t i = 0; i < count && offset + (i + 1) * width <= result.bytes.size(); ++i) {
        auto* first = result.bytes.data() + offset + i * width;
        std::reverse(first, first + width);
      }
    for (std::size_t i = 352; i + 1 < result.bytes.size(); i += 2) std::swap(result.bytes[i], result.bytes[i + 1]);
    return result;
  }
};

}  // namespace support
