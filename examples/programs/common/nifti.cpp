// SPDX-License-Identifier: Apache-2.0
// Nifticlib repairs headers without a word, trusts their extents and allocates before it reads. So headers are parsed
// by ourselves, and voxels are read in bounded pieces.
#include "nifti.hpp"

#include <nifti1_io.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "suture/feed/nifti.hpp"
#include "whole_file.hpp"

namespace suture::examples {
namespace {

struct free_image {
  void operator()(nifti_image* image) const { nifti_image_free(image); }
};

template <class... Parts>
[[noreturn]] void refuse(const std::filesystem::path& path, const Parts&... parts) {
  fail(site{"nifti"}, path.string(), ": ", parts...);
}

// Calls f(value) with every voxel, scaled; stops at the first false and returns its index, or the number of voxels.
template <class F>
std::size_t each_value(const nifti_voxels& raw, F f) {
  std::size_t index = 0;
  with_nifti_type(raw.header.datatype, [&](auto type) {
    using stored = decltype(type);
    const std::size_t count = raw.bytes.size() / sizeof(stored);
    for (; index < count; ++index) {
      stored value;
      std::memcpy(&value, raw.bytes.data() + index * sizeof(stored), sizeof(stored));
      if (!f(static_cast<double>(value) * raw.header.slope + raw.header.intercept)) return;
    }
  });
  return index;
}

template <class T>
bool fits(double value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max() &&
         value == std::nearbyint(value);
}

template <class T>
volume<T> converted(const nifti_voxels& raw) {
  volume<T> result{raw.header.grid, {}};
  result.voxels.reserve(static_cast<std::size_t>(raw.header.grid.voxels()));
  each_value(raw, [&](double value) {
    result.voxels.push_back(static_cast<T>(value));
    return true;
  });
  return result;
}

extent3 position(const grid& g, std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  return {i / (g.extents[1] * g.extents[2]), i / g.extents[2] % g.extents[1], i % g.extents[2]};
}

template <class T>
void write_file(const std::filesystem::path& path, const volume<T>& image, int datatype) {
  const grid& g = image.grid;
  check(g, site{"nifti"});
  require(image.voxels.size() == static_cast<std::size_t>(g.voxels()), site{"nifti"}, path.string(), ": ",
          image.voxels.size(), " voxels do not fill extents ", g.extents);
  for (int k = 0; k < 3; ++k)
    if (g.extents[k] > 32767) refuse(path, "extents ", g.extents, " exceed the 32767 voxels an axis of NIfTI-1");

  const std::unique_ptr<nifti_image, free_image> nim(nifti_simple_init_nim());
  if (!nim) refuse(path, "out of memory");
  nim->ndim = nim->dim[0] = 3;
  nim->nx = nim->dim[1] = static_cast<int>(g.extents[2]);
  nim->ny = nim->dim[2] = static_cast<int>(g.extents[1]);
  nim->nz = nim->dim[3] = static_cast<int>(g.extents[0]);
  nim->dx = nim->pixdim[1] = static_cast<float>(g.spacing[2]);
  nim->dy = nim->pixdim[2] = static_cast<float>(g.spacing[1]);
  nim->dz = nim->pixdim[3] = static_cast<float>(g.spacing[0]);
  nim->datatype = datatype;
  nifti_datatype_sizes(datatype, &nim->nbyper, &nim->swapsize);
  nim->nvox = image.voxels.size();
  nim->xyz_units = NIFTI_UNITS_MM;
  nim->nifti_type = NIFTI_FTYPE_NIFTI1_1;
  nim->sform_code = nim->qform_code = NIFTI_XFORM_SCANNER_ANAT;
  nim->scl_slope = 1;
  nim->iname_offset = 352;
  const affine_map lps = g.index_to_physical();
  for (int row = 0; row < 3; ++row) {
    const double sign = row < 2 ? -1 : 1;  // LPS -> RAS
    for (int axis = 0; axis < 3; ++axis)
      nim->sto_xyz.m[row][axis] = static_cast<float>(sign * lps.linear[2 - row][2 - axis]);
    nim->sto_xyz.m[row][3] = static_cast<float>(sign * lps.offset[2 - row]);
    nim->sto_xyz.m[3][row] = 0;
  }
  nim->sto_xyz.m[3][3] = 1;
  nifti_mat44_to_quatern(nim->sto_xyz, &nim->quatern_b, &nim->quatern_c, &nim->quatern_d, &nim->qoffset_x,
                         &nim->qoffset_y, &nim->qoffset_z, nullptr, nullptr, nullptr, &nim->qfac);
  const nifti_1_header header = nifti_convert_nim2nhdr(nim.get());
  char start[352] = {};  // the header and four zero bytes: no extensions
  std::memcpy(start, &header, sizeof header);
  // What no float holds would come back as nonsense.
  parse_nifti_header(path, std::span<const char, nifti_header_bytes>(start, nifti_header_bytes),
                     std::numeric_limits<std::int64_t>::max());

  const bool compress = path.extension() == ".gz";
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  write_whole({"nifti"}, path, [&](const std::filesystem::path& temporary) -> std::string {
    errno = 0;
    gzFile_s* file = gzopen(temporary.c_str(), compress ? "wb1" : "wbT");
    if (!file) return std::strerror(errno);
    const auto put = [&](const void* from, std::size_t size) {
      const auto* bytes = static_cast<const char*>(from);
      for (std::size_t done = 0; done < size;) {
        const int wrote =
            gzwrite(file, bytes + done, static_cast<unsigned>(std::min(size - done, detail::nifti_piece)));
        if (wrote <= 0) return false;
        done += static_cast<std::size_t>(wrote);
      }
      return true;
    };
    bool ok = put(start, sizeof start) && put(image.voxels.data(), image.voxels.size() * sizeof(T));
    ok = gzclose(file) == Z_OK && ok;
    return ok ? "" : std::strerror(errno);
  });
}

}  // namespace

image_volume read_image(const std::filesystem::path& path) {
  const nifti_voxels raw = read_nifti_voxels(path);
  bool whole = true;
  double bad = 0;
  const std::size_t stopped = each_value(raw, [&](double value) {
    whole = whole && fits<std::int16_t>(value);
    bad = value;
    return std::abs(value) <= double{std::numeric_limits<float>::max()};
  });
  if (stopped < static_cast<std::size_t>(raw.header.grid.voxels()))
    refuse(path, "voxel ", position(raw.header.grid, stopped),
           std::isfinite(bad) ? " is beyond the range of a float: " : " is not finite: ", bad);
  if (whole) return converted<std::int16_t>(raw);
  return converted<float>(raw);
}

label_volume read_labels(const std::filesystem::path& path) {
  const nifti_voxels raw = read_nifti_voxels(path);
  double bad = 0;
  const std::size_t stopped = each_value(raw, [&](double value) {
    bad = value;
    return fits<std::uint8_t>(value);
  });
  if (stopped < static_cast<std::size_t>(raw.header.grid.voxels()))
    refuse(path, "label ", bad, " of voxel ", position(raw.header.grid, stopped), " is not a whole number in 0..255");
  return converted<std::uint8_t>(raw);
}

label_volume read_labels_of(const grid& image, const std::string& image_name, const std::filesystem::path& path) {
  label_volume labels = read_labels(path);
  require_same_place(image, labels.grid, image_name, path.string());
  labels.grid = image;
  return labels;
}

void write_nifti(const std::filesystem::path& path, const volume<std::uint8_t>& image) {
  write_file(path, image, DT_UINT8);
}
void write_nifti(const std::filesystem::path& path, const volume<std::int16_t>& image) {
  write_file(path, image, DT_INT16);
}
void write_nifti(const std::filesystem::path& path, const volume<float>& image) { write_file(path, image, DT_FLOAT32); }

}  // namespace suture::examples
