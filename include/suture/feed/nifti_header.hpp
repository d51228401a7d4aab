// SPDX-License-Identifier: Apache-2.0
// Reads from the first 348 bytes of a NIfTI-1 file how its voxels are stored. Nothing is repaired: a header with an
// impossible value in a field that is used is refused. Needs nifticlib (Debian: libnifti-dev, whose headers lie in
// /usr/include/nifti).
#pragma once

#include <nifti1_io.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>

#include "../base/error.hpp"
#include "../image/grid.hpp"

namespace suture {

constexpr std::size_t nifti_header_bytes = 348;

struct nifti_header {
  suture::grid grid{};
  int datatype = 0;
  std::uint64_t voxel_bytes = 0;    // of one voxel
  std::uint64_t offset = 0;         // of the first voxel in the file
  bool swapped = false;             // the file has the other byte order
  double slope = 1, intercept = 0;  // value = stored times slope plus intercept
};

// Calls f with a value of the C++ type of a NIfTI voxel type. Returns false for types that are not read.
template <class F>
bool with_nifti_type(int datatype, F f) {
  const auto is = [&](int code, auto zero) {
    if (datatype == code) f(zero);
    return datatype == code;
  };
  return is(DT_UINT8, std::uint8_t{}) || is(DT_INT8, std::int8_t{}) || is(DT_INT16, std::int16_t{}) ||
         is(DT_UINT16, std::uint16_t{}) || is(DT_INT32, std::int32_t{}) || is(DT_UINT32, std::uint32_t{}) ||
         is(DT_INT64, std::int64_t{}) || is(DT_UINT64, std::uint64_t{}) || is(DT_FLOAT32, float{}) ||
         is(DT_FLOAT64, double{});
}

namespace detail {

template <class... Parts>
[[noreturn]] void refuse_nifti(const std::filesystem::path& path, const Parts&... parts) {
  fail(site{"nifti"}, path.string(), ": ", parts...);
}

// The header in this machine's byte order, and the file that errors name.
struct nifti_header_reader {
  const std::filesystem::path& path;
  nifti_1_header h{};

  template <class... Parts>
  void demand(bool good, const Parts&... parts) const {
    if (!good) refuse_nifti(path, parts...);
  }
  void demand_finite(const char* field, float value) const {
    demand(std::isfinite(value), field, " is ", value, ", must be finite");
  }

  // Copies the header, in this machine's byte order, and returns whether the file has the other one.
  bool parse_order(std::span<const char, nifti_header_bytes> bytes) {
    static_assert(sizeof h == nifti_header_bytes);
    std::memcpy(&h, bytes.data(), sizeof h);
    const int stored = h.sizeof_hdr;
    if (stored == static_cast<int>(sizeof h)) return false;
    swap_nifti_header(&h, 1);
    if (h.sizeof_hdr == static_cast<int>(sizeof h)) return true;
    demand(stored != 540 && h.sizeof_hdr != 540, "sizeof_hdr is 540: NIfTI-2 files are not supported");
    refuse_nifti(path, "sizeof_hdr is ", stored, ", not 348: not a NIfTI-1 file");
  }

  void check_magic() const {
    if (std::memcmp(h.magic, "n+1", 4) == 0) return;
    demand(std::memcmp(h.magic, "ni1", 4) != 0,
           "magic is ni1: header and voxels in two files (.hdr and .img) are not supported");
    std::string shown;
    for (const char c : h.magic) shown += c >= ' ' && c <= '~' ? c : '?';
    refuse_nifti(path, "magic is \"", shown, "\", not n+1: not a NIfTI-1 file");
  }

  std::uint64_t count_voxels() const {
    demand(h.dim[0] >= 1 && h.dim[0] <= 7, "dim[0], the number of dimensions, is ", h.dim[0], ", must be 1 to 7");
    std::uint64_t voxels = 1;
    for (int k = 1; k <= h.dim[0]; ++k) {
      demand(h.dim[k] > 0, "dim[", k, "] is ", h.dim[k], ", must be positive");
      demand(k <= 3 || h.dim[k] == 1, "dim[", k, "] is ", h.dim[k], ": several volumes along axis ", k,
             ", expected one");
      voxels *= static_cast<std::uint64_t>(h.dim[k]);  // three factors of at most 15 bits
    }
    return voxels;
  }

  // Returns what the voxels are, or nullptr if they are numbers at positions.
  const char* other_meaning() const {
    switch (h.intent_code) {
      case NIFTI_INTENT_GENMATRIX:
      case NIFTI_INTENT_SYMMATRIX:
        return "matrices";
      case NIFTI_INTENT_DISPVECT:
      case NIFTI_INTENT_VECTOR:
      case NIFTI_INTENT_FSL_FNIRT_DISPLACEMENT_FIELD:
        return "vectors";
      case NIFTI_INTENT_QUATERNION:
        return "quaternions";
      case NIFTI_INTENT_POINTSET:
      case NIFTI_INTENT_TRIANGLE:
      case NIFTI_INTENT_NODE_INDEX:
      case NIFTI_INTENT_SHAPE:
        return "parts of a mesh";
      case NIFTI_INTENT_RGB_VECTOR:
      case NIFTI_INTENT_RGBA_VECTOR:
        return "colors";
      case NIFTI_INTENT_FSL_CUBIC_SPLINE_COEFFICIENTS:
      case NIFTI_INTENT_FSL_DCT_COEFFICIENTS:
      case NIFTI_INTENT_FSL_QUADRATIC_SPLINE_COEFFICIENTS:
      case NIFTI_INTENT_FSL_TOPUP_CUBIC_SPLINE_COEFFICIENTS:
      case NIFTI_INTENT_FSL_TOPUP_QUADRATIC_SPLINE_COEFFICIENTS:
        return "coefficients of a field";
      default:
        return nullptr;
    }
  }

  void parse_type(nifti_header& result) const {
    result.datatype = h.datatype;
    demand(with_nifti_type(h.datatype, [&](auto type) { result.voxel_bytes = sizeof type; }), "datatype is ",
           h.datatype, " (", nifti_datatype_string(h.datatype),
           "), not a voxel type that is read: one integer or real number of at ", "most 64 bits");
    const int bits = static_cast<int>(8 * result.voxel_bytes);
    demand(h.bitpix == 0 || h.bitpix == bits, "bitpix is ", h.bitpix, ", but voxels of datatype ", h.datatype, " (",
           nifti_datatype_string(h.datatype), ") have ", bits, " bits");
  }

  void parse_offset(nifti_header& result, std::uint64_t voxels, std::uint64_t most_bytes) const {
    const float offset = h.vox_offset;
    demand(offset >= 352, "vox_offset is ", offset, ", must be at least 352 where header and voxels share a file");
    demand(std::isfinite(offset) && offset == std::floor(offset), "vox_offset is ", offset, ", must be a whole number");
    demand(static_cast<double>(offset) <= static_cast<double>(most_bytes), "truncated: vox_offset is ", offset,
           ", the file can hold at most ", most_bytes, " bytes");
    result.offset = static_cast<std::uint64_t>(offset);
    const std::uint64_t size = voxels * result.voxel_bytes;
    demand(size <= most_bytes && result.offset <= most_bytes - size, "truncated: the header announces ", size,
           " bytes of voxels, the file can hold at most ", most_bytes > result.offset ? most_bytes - result.offset : 0);
  }

  // If the slope is 0 or not finite, voxels are not scaled.
  void parse_scale(nifti_header& result) const {
    if (!std::isfinite(h.scl_slope) || h.scl_slope == 0) return;
    demand(std::isfinite(h.scl_inter), "scl_inter is ", h.scl_inter, " beside scl_slope ", h.scl_slope,
           ", must be finite");
    result.slope = static_cast<double>(h.scl_slope);
    result.intercept = static_cast<double>(h.scl_inter);
  }

  // Returns the millimeters of a unit of length of the header.
  double mm_per_unit() const {
    const int unit = XYZT_TO_SPACE(h.xyzt_units);
    switch (unit) {
      case NIFTI_UNITS_UNKNOWN:
      case NIFTI_UNITS_MM:
        return 1;
      case NIFTI_UNITS_METER:
        return 1000;
      case NIFTI_UNITS_MICRON:
        return 0.001;
      default:
        refuse_nifti(path, "xyzt_units is ", static_cast<int>(h.xyzt_units), ": ", unit, " is no unit of length");
    }
  }

  // Returns the spacing of a voxel along axis 1, 2 or 3. An axis beyond dim[0] may have spacing 0, which counts as 1.
  float spacing_of(int axis) const {
    const float spacing = h.pixdim[axis];
    if (axis > h.dim[0] && spacing == 0) return 1;
    // A subnormal spacing would lose most of its digits when the axes are rotated.
    demand(std::isnormal(spacing) && spacing > 0, "pixdim[", axis, "], the spacing of axis ", axis, ", is ", spacing,
           ", must be positive, finite and no subnormal float");
    return spacing;
  }

  mat44 sform() const {
    constexpr const char* names[3] = {"srow_x[", "srow_y[", "srow_z["};
    const float* const rows[3] = {h.srow_x, h.srow_y, h.srow_z};
    mat44 result{};
    for (int row = 0; row < 3; ++row)
      for (int k = 0; k < 4; ++k) {
        demand(std::isfinite(rows[row][k]), names[row], k, "] is ", rows[row][k], ", must be finite");
        result.m[row][k] = rows[row][k];
      }
    for (int k = 0; k < 3; ++k)
      demand(rows[0][k] != 0 || rows[1][k] != 0 || rows[2][k] != 0, "srow_x[", k, "], srow_y[", k, "] and srow_z[", k,
             "] are 0: the sform is singular, the spacing of axis ", k + 1, " is 0");
    return result;
  }

  mat44 qform() const {
    const float b = h.quatern_b, c = h.quatern_c, d = h.quatern_d;
    demand_finite("quatern_b", b);
    demand_finite("quatern_c", c);
    demand_finite("quatern_d", d);
    demand_finite("qoffset_x", h.qoffset_x);
    demand_finite("qoffset_y", h.qoffset_y);
    demand_finite("qoffset_z", h.qoffset_z);
    const auto square = [](float v) { return static_cast<double>(v) * static_cast<double>(v); };
    // In a half turn the squares that other programs computed in float may exceed 1 by this much.
    constexpr double rounding = 1e-5;
    const double squares = square(b) + square(c) + square(d);
    demand(squares <= 1 + rounding, "quatern_b, quatern_c and quatern_d are ", b, ", ", c, " and ", d,
           ": the sum of their squares is ", squares, ", of a rotation it is at most 1");
    const float handedness = h.pixdim[0];
    demand(handedness == 0 || std::abs(handedness) == 1, "pixdim[0], the handedness, is ", handedness,
           ", must be 1 or -1");
    return nifti_quatern_to_mat44(b, c, d, h.qoffset_x, h.qoffset_y, h.qoffset_z, spacing_of(1), spacing_of(2),
                                  spacing_of(3), handedness < 0 ? -1.0f : 1.0f);
  }

  mat44 spacing_alone() const {
    mat44 result{};
    for (int k = 0; k < 3; ++k) result.m[k][k] = spacing_of(k + 1);
    return result;
  }

  // Returns the grid by the sform if it is known, else by the qform, else by the spacing alone.
  grid parse_grid() const {
    for (const auto& [field, code] : {std::pair{"sform_code", h.sform_code}, std::pair{"qform_code", h.qform_code}}) {
      demand(code >= NIFTI_XFORM_UNKNOWN && code <= NIFTI_XFORM_TEMPLATE_OTHER, field, " is ", code, ", must be 0 to ",
             NIFTI_XFORM_TEMPLATE_OTHER);
      if (code != NIFTI_XFORM_UNKNOWN) break;  // a known sform replaces the qform
    }
    const bool by_sform = h.sform_code != NIFTI_XFORM_UNKNOWN;
    const mat44 ras = by_sform ? sform() : h.qform_code != NIFTI_XFORM_UNKNOWN ? qform() : spacing_alone();
    const double to_mm = mm_per_unit();

    std::int64_t size[3];
    double spacing[3], origin[3], direction[9];
    for (int row = 0; row < 3; ++row) {
      const double sign = row < 2 ? -to_mm : to_mm;  // RAS -> LPS
      origin[row] = sign * static_cast<double>(ras.m[row][3]);
      for (int axis = 0; axis < 3; ++axis) direction[row * 3 + axis] = sign * static_cast<double>(ras.m[row][axis]);
    }
    for (int axis = 0; axis < 3; ++axis) {
      size[axis] = axis < h.dim[0] ? h.dim[axis + 1] : 1;
      const double x = direction[axis], y = direction[3 + axis], z = direction[6 + axis];
      spacing[axis] = std::sqrt(fma(x, x, fma(y, y, fma(z, z, 0.0))));
      for (int row = 0; row < 3; ++row)
        direction[row * 3 + axis] = direction[row * 3 + axis] / spacing[axis] + 0.0;  // no -0
    }
    const grid g = grid_from_itk(size, spacing, origin, direction);
    try {
      check(g, site{"grid"});
    } catch (const error& problem) {
      const std::string text = problem.what();
      refuse_nifti(path, by_sform ? "srow_x, srow_y and srow_z: " : "the grid: ", text.substr(text.find("grid: ") + 6));
    }
    return g;
  }
};

}  // namespace detail

// Parses a header. `most_bytes` is what the file can hold at most, uncompressed. Throws suture::error naming the file,
// the field and its value.
inline nifti_header parse_nifti_header(const std::filesystem::path& path,
                                       std::span<const char, nifti_header_bytes> bytes, std::uint64_t most_bytes) {
  detail::nifti_header_reader header{path};
  nifti_header result;
  result.swapped = header.parse_order(bytes);
  header.check_magic();
  const std::uint64_t voxels = header.count_voxels();
  const char* const meaning = header.other_meaning();
  header.demand(meaning == nullptr, "intent_code is ", header.h.intent_code, ": its values are ", meaning,
                ", not an image");
  header.parse_type(result);
  header.parse_offset(result, voxels, most_bytes);
  header.parse_scale(result);
  result.grid = header.parse_grid();
  return result;
}

}  // namespace suture
