// SPDX-License-Identifier: Apache-2.0
// What the first 348 bytes of a NIfTI-1 file say about its voxels. Nothing is repaired: a header that says something
// impossible where it matters is refused.
#pragma once

#include <nifti1.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "suture/image/grid.hpp"

namespace suture::examples {

constexpr std::size_t nifti_header_bytes = 348;

struct nifti_header {
  suture::grid grid{};
  int datatype = 0;
  std::uint64_t voxel_bytes = 0;    // of one voxel
  std::uint64_t offset = 0;         // of the first voxel in the file
  bool swapped = false;             // the file has the other byte order
  double slope = 1, intercept = 0;  // what is stored times slope plus intercept is what is meant
};

// `most_bytes` is what the file can hold at most, uncompressed. Throws suture::error naming the file, the field and its
// value.
nifti_header parse_nifti_header(const std::filesystem::path& path, std::span<const char, nifti_header_bytes> bytes,
                                std::uint64_t most_bytes);

// Calls f with a value of the C++ type of a NIfTI voxel type; false if the type is not a number that is read.
template <class F>
bool with_nifti_type(int datatype, F f) {
  switch (datatype) {
    case DT_UINT8:
      f(std::uint8_t{});
      return true;
    case DT_INT8:
      f(std::int8_t{});
      return true;
    case DT_INT16:
      f(std::int16_t{});
      return true;
    case DT_UINT16:
      f(std::uint16_t{});
      return true;
    case DT_INT32:
      f(std::int32_t{});
      return true;
    case DT_UINT32:
      f(std::uint32_t{});
      return true;
    case DT_INT64:
      f(std::int64_t{});
      return true;
    case DT_UINT64:
      f(std::uint64_t{});
      return true;
    case DT_FLOAT32:
      f(float{});
      return true;
    case DT_FLOAT64:
      f(double{});
      return true;
    default:
      return false;
  }
}

}  // namespace suture::examples
