// SPDX-License-Identifier: Apache-2.0
// Cases in single-file NIfTI-1 (.nii, .nii.gz). Not part of suture.hpp: it needs nifticlib and zlib (Debian:
// libnifti-dev, zlib1g-dev).
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "nifti_header.hpp"
#include "raw_file.hpp"

namespace suture {

// The voxels of a file as they are stored, in the byte order of this machine.
struct nifti_voxels {
  nifti_header header;
  std::vector<char> bytes;
};

namespace detail {

inline constexpr std::size_t nifti_piece = std::size_t{1} << 24;
// Deflate cannot expand by more than this.
inline constexpr std::uint64_t largest_compression = 1032;

struct close_gz_file {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// Returns the number of bytes read, less than `size` at the end of the file; damage is an error.
inline std::size_t read_bytes(gzFile_s* file, void* to, std::size_t size, const std::filesystem::path& path) {
  auto* bytes = static_cast<char*>(to);
  std::size_t done = 0;
  while (done < size) {
    const int got = gzread(file, bytes + done, static_cast<unsigned>(std::min(size - done, nifti_piece)));
    if (got < 0) {
      int code = 0;
      const char* text = gzerror(file, &code);
      if (code == Z_BUF_ERROR) break;  // the compressed stream ends too early
      if (code == Z_ERRNO) refuse_nifti(path, "cannot be read: ", std::strerror(errno));
      refuse_nifti(path, "damaged compression: ", text);
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

template <class T>
void swap_bytes(std::vector<char>& bytes) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T))
    std::reverse(bytes.data() + i, bytes.data() + i + sizeof(T));
}

// Reads a compressed file to its end, so that zlib compares the checksum of what was read.
inline void check_rest(gzFile_s* file, const std::filesystem::path& path) {
  if (gzdirect(file)) return;
  std::vector<char> rest(std::size_t{1} << 16);
  while (read_bytes(file, rest.data(), rest.size(), path) == rest.size()) {
  }
  int code = 0;
  gzerror(file, &code);
  if (code == Z_BUF_ERROR) refuse_nifti(path, "truncated: the compressed stream ends before its checksum");
}

struct open_nifti {
  std::unique_ptr<gzFile_s, close_gz_file> file;
  nifti_header header;
  bool compressed;
};
inline open_nifti open_nifti_file(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) refuse_nifti(path, "no such file");
  if (std::filesystem::is_directory(path, status)) refuse_nifti(path, "is a folder");
  if (!std::filesystem::is_regular_file(path, status)) refuse_nifti(path, "is no regular file");
  const std::uint64_t stored = std::filesystem::file_size(path, status);
  if (status) refuse_nifti(path, status.message());
  std::unique_ptr<gzFile_s, close_gz_file> file(gzopen(path.c_str(), "rb"));
  if (!file) refuse_nifti(path, "cannot be opened: ", std::strerror(errno));

  std::array<char, nifti_header_bytes> start;
  if (read_bytes(file.get(), start.data(), start.size(), path) != start.size())
    refuse_nifti(path, "shorter than a NIfTI header of ", start.size(), " bytes");
  const std::uint64_t limit = gzdirect(file.get()) ? stored : stored * largest_compression;
  const nifti_header header = parse_nifti_header(path, start, limit);
  const bool compressed = !gzdirect(file.get());
  return {std::move(file), header, compressed};
}

// Reads the voxels of an open file whose header has been read.
inline nifti_voxels read_nifti_voxels(const open_nifti& opened, const std::filesystem::path& path) {
  gzFile_s* const file = opened.file.get();
  nifti_voxels raw{opened.header, {}};
  std::vector<char> skipped(
      static_cast<std::size_t>(std::min<std::uint64_t>(raw.header.offset - nifti_header_bytes, nifti_piece)));
  for (std::uint64_t left = raw.header.offset - nifti_header_bytes; left > 0;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, nifti_piece));
    if (read_bytes(file, skipped.data(), part, path) != part) refuse_nifti(path, "truncated before the first voxel");
    left -= part;
  }
  // Memory grows as the bytes arrive: a header that announces too many voxels costs no more memory than the file has.
  const std::uint64_t size = static_cast<std::uint64_t>(raw.header.grid.voxels()) * raw.header.voxel_bytes;
  while (raw.bytes.size() < size) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size - raw.bytes.size(), nifti_piece));
    const std::size_t before = raw.bytes.size();
    raw.bytes.resize(before + part);
    const std::size_t got = read_bytes(file, raw.bytes.data() + before, part, path);
    if (got != part) refuse_nifti(path, "truncated: ", before + got, " of ", size, " bytes of voxels");
  }
  check_rest(file, path);
  if (raw.header.swapped)
    with_nifti_type(raw.header.datatype, [&](auto type) { swap_bytes<decltype(type)>(raw.bytes); });
  return raw;
}

}  // namespace detail

// Reads a whole file. Memory grows with the bytes that the file has, whatever its header announces.
inline nifti_voxels read_nifti_voxels(const std::filesystem::path& path) {
  return detail::read_nifti_voxels(detail::open_nifti_file(path), path);
}

struct nifti_case {
  std::string name;
  std::filesystem::path path;
};

// Reads boxes of NIfTI files as elements T, scl_slope and scl_inter applied. Of a file that is not compressed it reads
// the rows of the box. A compressed file must be inflated from its beginning, so the constructor inflates it and keeps
// it in memory. The inflated files together must take at most `most_inflated_bytes`. Integers T must represent every
// voxel; other types round it, and a finite voxel that would become infinite is an error.
template <class T>
class nifti_reader {
public:
  using element = T;

  explicit nifti_reader(const std::vector<nifti_case>& cases, std::uint64_t most_inflated_bytes = 0) {
    std::uint64_t inflated = 0;
    for (const nifti_case& each : cases) {
      detail::open_nifti opened = detail::open_nifti_file(each.path);
      file f{each, opened.header, {}};
      if (opened.compressed) {
        inflated += static_cast<std::uint64_t>(opened.header.grid.voxels()) * opened.header.voxel_bytes;
        if (inflated > most_inflated_bytes)
          detail::refuse_nifti(each.path,
                               "is compressed, so that a box of it takes inflating all of it: expected at most ",
                               most_inflated_bytes, " bytes of inflated files, got ", inflated,
                               ". Decompress it, build a store, or raise most_inflated_bytes");
        f.inflated = detail::read_nifti_voxels(opened, each.path).bytes;
        f.header.swapped = false;
      }
      files_.push_back(std::move(f));
    }
  }

  std::size_t size() const { return files_.size(); }
  const std::string& name(std::size_t index) const { return at(index).item.name; }
  const grid& grid_of(std::size_t index) const { return at(index).header.grid; }
  std::int64_t channels(std::size_t) const { return 1; }

  void read(std::size_t index, const voxel_box& box, T* to) const {
    const file& from = at(index);
    detail::check_box("nifti_reader", from.item.name, from.header.grid.extents, box);
    with_nifti_type(from.header.datatype, [&](auto type) { read_as<decltype(type)>(from, box, to); });
  }

private:
  struct file {
    nifti_case item;
    nifti_header header;
    std::vector<char> inflated;
  };

  const file& at(std::size_t index) const {
    detail::check_case("nifti_reader", index, files_.size());
    return files_[index];
  }

  template <class Stored>
  static void read_as(const file& from, const voxel_box& box, T* to) {
    const nifti_header& h = from.header;
    if constexpr (std::is_same_v<Stored, T>)
      if (h.slope == 1 && h.intercept == 0 && !h.swapped) return read_stored<Stored>(from, box, to);
    std::vector<Stored> stored(static_cast<std::size_t>(box.voxels()));
    read_stored<Stored>(from, box, stored.data());
    for (std::size_t i = 0; i < stored.size(); ++i) {
      if (h.swapped) {
        auto* const bytes = reinterpret_cast<char*>(&stored[i]);
        std::reverse(bytes, bytes + sizeof(Stored));
      }
      const double product = fma(static_cast<double>(stored[i]), h.slope, 0.0);  // rounded, as nibabel does
      const double value = product + h.intercept;
      if (!holds(value))
        detail::refuse_nifti(from.item.path, "voxels: expected numbers that ", storage<T>::name, " holds, got ", value,
                             ". Read it as float");
      to[i] = stored_as(value);
    }
  }
  template <class Stored>
  static void read_stored(const file& from, const voxel_box& box, Stored* to) {
    const nifti_header& h = from.header;
    if (from.inflated.empty()) {
      const detail::input_file opened("nifti_reader", from.item.path);
      return detail::read_rows(opened, h.offset, h.grid.extents, 1, box, to);
    }
    detail::each_row(h.grid.extents, 1, box, [&](std::int64_t first, std::int64_t at) {
      std::memcpy(to + at, from.inflated.data() + static_cast<std::size_t>(first) * sizeof(Stored),
                  static_cast<std::size_t>(box.size[2]) * sizeof(Stored));
    });
  }

  static bool holds(double value) {
    if constexpr (std::is_integral_v<T>)
      return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
             value < static_cast<double>(std::numeric_limits<T>::max()) + 1 && value == std::nearbyint(value);
    else  // rounded; infinities and NaN of the file stay
      return !std::isfinite(value) || detail::finite_as<T>(value);
  }
  static T stored_as(double value) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(value);
    else
      return storage<T>::store(static_cast<float>(value));
  }

  std::vector<file> files_;
};

}  // namespace suture
