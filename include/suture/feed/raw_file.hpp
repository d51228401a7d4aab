// SPDX-License-Identifier: Apache-2.0
// Cases in files of plain voxels, of which a box is read row by row.
#pragma once

#include <bit>

#include "file.hpp"
#include "reader.hpp"

namespace suture {

// A file with a dense array (channel, z, y, x) of elements in the byte order of this machine, from a given byte on.
struct raw_file {
  std::string name;
  std::filesystem::path path;
  suture::grid grid{};
  std::int64_t channels = 1;
  std::uint64_t offset = 0;
};

namespace detail {

// Reads a box of a dense array of T from an open file. Rows that follow one another without a gap are read at once.
template <class T>
void read_rows(const input_file& file, std::uint64_t offset, const extent3& extents, std::int64_t channels,
               const voxel_box& box, T* to) {
  const bool whole_rows = box.size[2] == extents[2], whole_planes = whole_rows && box.size[1] == extents[1];
  const bool all = whole_planes && box.size[0] == extents[0];
  const std::int64_t step = all            ? channels * box.voxels()
                            : whole_planes ? box.voxels()
                            : whole_rows   ? box.size[1] * box.size[2]
                                           : box.size[2];
  each_row(extents, channels, box, [&](std::int64_t from, std::int64_t at) {
    if (at % step == 0)
      file.read(offset + static_cast<std::uint64_t>(from) * sizeof(T), to + at,
                static_cast<std::size_t>(step) * sizeof(T));
  });
}

}  // namespace detail

// Reads boxes of raw files, and of each file only the rows of the box. The constructor checks that the files are as
// long as their grids say.
template <class T>
class raw_file_reader {
public:
  using element = T;

  explicit raw_file_reader(std::vector<raw_file> cases) : cases_(std::move(cases)) {
    for (const raw_file& each : cases_) {
      const std::string where = "raw_file_reader: " + each.name;
      check(each.grid, {where});
      check_channels(each.channels, {where});
      const detail::input_file file("raw_file_reader", each.path);
      const std::uint64_t bytes =
          static_cast<std::uint64_t>(each.channels) * static_cast<std::uint64_t>(each.grid.voxels()) * sizeof(T);
      if (each.offset > file.size() || bytes != file.size() - each.offset)
        file.refuse("size: expected ", each.offset, " + ", bytes, " bytes for ", each.channels, " x ",
                    each.grid.extents, " voxels of ", storage<T>::name, ", got ", file.size(),
                    ". Check grid, channels, offset and element type");
    }
  }

  std::size_t size() const { return cases_.size(); }
  const std::string& name(std::size_t index) const { return at(index).name; }
  const grid& grid_of(std::size_t index) const { return at(index).grid; }
  std::int64_t channels(std::size_t index) const { return at(index).channels; }

  void read(std::size_t index, const voxel_box& box, T* to) const {
    const raw_file& from = at(index);
    detail::check_box("raw_file_reader", from.name, from.grid.extents, box);
    const detail::input_file file("raw_file_reader", from.path);
    detail::read_rows(file, from.offset, from.grid.extents, from.channels, box, to);
  }

private:
  const raw_file& at(std::size_t index) const {
    detail::check_case("raw_file_reader", index, cases_.size());
    return cases_[index];
  }

  std::vector<raw_file> cases_;
};

}  // namespace suture
