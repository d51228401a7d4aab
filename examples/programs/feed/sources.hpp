// SPDX-License-Identifier: Apache-2.0
// What the feed of this example reads: NIfTI files and arrays of Zarr v3, in any mixture, or a sample in memory.
#pragma once

#include <string>
#include <vector>

#include "common/volume.hpp"
#include "suture/feed/reader.hpp"

namespace suture::examples {

// Cases of readers of one case each.
template <class T>
class case_list {
public:
  using element = T;
  explicit case_list(std::vector<any_reader<T>> cases) : cases_(std::move(cases)) {}
  std::size_t size() const { return cases_.size(); }
  std::string name(std::size_t index) const { return cases_[index].name(0); }
  grid grid_of(std::size_t index) const { return cases_[index].grid_of(0); }
  std::int64_t channels(std::size_t index) const { return cases_[index].channels(0); }
  std::size_t parts(std::size_t index, const voxel_box& box) const { return cases_[index].parts(0, box); }
  void read_part(std::size_t index, const voxel_box& box, std::size_t part, T* to) const {
    cases_[index].read_part(0, box, part, to);
  }
  void read(std::size_t index, const voxel_box& box, T* to) const { cases_[index].read(0, box, to); }

private:
  std::vector<any_reader<T>> cases_;
};

// Opens one case. A folder is a case of a store, or an array of Zarr v3, whose voxels count as 1 mm; anything else is a
// NIfTI file, which is inflated into memory if it is compressed. Throws suture::error naming the file, also if it inflates
// to more than `most_inflated_bytes`.
template <class T>
any_reader<T> open_case(const std::string& path, std::uint64_t most_inflated_bytes);
// Label maps of 0, for images that have none.
any_reader<std::uint8_t> no_labels(const grid& g, const std::string& name);

}  // namespace suture::examples
