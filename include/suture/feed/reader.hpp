// SPDX-License-Identifier: Apache-2.0
// Readers, the sources of a feed: they read boxes of the cases of a cohort.
#pragma once

#include <concepts>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../base/numeric.hpp"
#include "../image/view.hpp"

namespace suture {

// A reader knows the cases of a cohort: how many there are, what each is called, its grid and its channels. Its element
// is the type of the voxels. read(index, box, to) fills `to` with the voxels of a box of a case, channels-first, x
// fastest, without padding: channels * box.voxels() elements. Several threads call it at once. A case that cannot be
// read throws an exception that names it.
template <class R>
concept box_reader = requires(const R& r, std::size_t index, const voxel_box& box, typename R::element* to) {
  { r.size() } -> std::convertible_to<std::size_t>;
  { r.name(index) } -> std::convertible_to<std::string>;
  { r.grid_of(index) } -> std::convertible_to<grid>;
  { r.channels(index) } -> std::convertible_to<std::int64_t>;
  r.read(index, box, to);
};

// A reader that can split the work on one box among threads, for example by the chunks of its file: read_part(index,
// box, part, to) for every part from 0 to parts(index, box) - 1, in any order and on any thread, writes to `to` what
// read does.
template <class R>
concept divided_reader = box_reader<R> &&
    requires(const R& r, std::size_t index, const voxel_box& box, std::size_t part, typename R::element* to) {
  { r.parts(index, box) } -> std::convertible_to<std::size_t>;
  r.read_part(index, box, part, to);
};

namespace detail {

template <box_reader R>
std::size_t parts_of(const R& r, std::size_t index, const voxel_box& box) {
  if constexpr (divided_reader<R>)
    return r.parts(index, box);
  else
    return 1;
}
template <box_reader R>
void read_part_of(const R& r, std::size_t index, const voxel_box& box, std::size_t part, typename R::element* to) {
  if constexpr (divided_reader<R>)
    r.read_part(index, box, part, to);
  else
    r.read(index, box, to);
}

// Checks that the case exists and that the requested voxels lie in it.
inline void check_case(std::string_view reader, std::size_t index, std::size_t cases) {
  require(index < cases, {reader}, "index: expected a case below ", cases, ", got ", index);
}
inline void check_box(std::string_view reader, const std::string& name, const extent3& extents, const voxel_box& box) {
  for (int k = 0; k < 3; ++k)
    require(box.size[k] > 0 && box.first[k] >= 0 && box.first[k] <= extents[k] - box.size[k], {reader}, name,
            ": box: expected voxels within the extents ", extents, ", got ", box.size, " voxels from ", box.first);
}

// Calls row(first element of the source, first element of the destination) for every row of a box, where the source is
// a dense array of `channels` volumes, and both count elements.
template <class Row>
void each_row(const extent3& extents, std::int64_t channels, const voxel_box& box, const Row& row) {
  std::int64_t to = 0;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t z = box.first[0]; z < box.first[0] + box.size[0]; ++z)
      for (std::int64_t y = box.first[1]; y < box.first[1] + box.size[1]; ++y, to += box.size[2])
        row(((c * extents[0] + z) * extents[1] + y) * extents[2] + box.first[2], to);
}

}  // namespace detail

// Cases in memory that the caller owns, of any strides.
template <class T>
class memory_reader {
public:
  using element = T;

  struct item {
    std::string name;
    view<const T> voxels;
  };
  explicit memory_reader(std::vector<item> cases) : cases_(std::move(cases)) {
    for (const item& each : cases_) {
      const std::string where = "memory_reader: " + each.name;
      check(each.voxels, {where});
    }
  }

  std::size_t size() const { return cases_.size(); }
  const std::string& name(std::size_t index) const { return at(index).name; }
  const grid& grid_of(std::size_t index) const { return at(index).voxels.grid; }
  std::int64_t channels(std::size_t index) const { return at(index).voxels.channels; }

  void read(std::size_t index, const voxel_box& box, T* to) const {
    const item& from = at(index);
    const view<const T>& v = from.voxels;
    detail::check_box("memory_reader", from.name, v.grid.extents, box);
    for (std::int64_t c = 0; c < v.channels; ++c)
      for (std::int64_t z = box.first[0]; z < box.first[0] + box.size[0]; ++z)
        for (std::int64_t y = box.first[1]; y < box.first[1] + box.size[1]; ++y) {
          const T* row = v.data + c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + box.first[2] * v.stride[2];
          if (v.stride[2] == 1)
            std::memcpy(to, row, static_cast<std::size_t>(box.size[2]) * sizeof(T));
          else
            for (std::int64_t x = 0; x < box.size[2]; ++x) to[x] = row[x * v.stride[2]];
          to += box.size[2];
        }
  }

private:
  const item& at(std::size_t index) const {
    detail::check_case("memory_reader", index, cases_.size());
    return cases_[index];
  }

  std::vector<item> cases_;
};

// Any reader of one element type, chosen when a program runs. Copies share the reader that it holds.
template <class T>
class any_reader {
public:
  using element = T;

  template <box_reader R>
  requires(std::is_same_v<typename R::element, T> && !std::is_same_v<R, any_reader>) any_reader(R reader)
      : reader_(std::make_shared<const owned<R>>(std::move(reader))) {}

  std::size_t size() const { return reader_->size(); }
  std::string name(std::size_t index) const { return reader_->name(index); }
  grid grid_of(std::size_t index) const { return reader_->grid_of(index); }
  std::int64_t channels(std::size_t index) const { return reader_->channels(index); }
  std::size_t parts(std::size_t index, const voxel_box& box) const { return reader_->parts(index, box); }
  void read_part(std::size_t index, const voxel_box& box, std::size_t part, T* to) const {
    reader_->read_part(index, box, part, to);
  }
  void read(std::size_t index, const voxel_box& box, T* to) const {
    const std::size_t count = parts(index, box);
    for (std::size_t part = 0; part < count; ++part) read_part(index, box, part, to);
  }

private:
  struct reader_interface {
    virtual ~reader_interface() = default;
    virtual std::size_t size() const = 0;
    virtual std::string name(std::size_t) const = 0;
    virtual grid grid_of(std::size_t) const = 0;
    virtual std::int64_t channels(std::size_t) const = 0;
    virtual std::size_t parts(std::size_t, const voxel_box&) const = 0;
    virtual void read_part(std::size_t, const voxel_box&, std::size_t, T*) const = 0;
  };
  template <class R>
  struct owned final : reader_interface {
    explicit owned(R r) : reader(std::move(r)) {}
    std::size_t size() const override { return reader.size(); }
    std::string name(std::size_t index) const override { return reader.name(index); }
    grid grid_of(std::size_t index) const override { return reader.grid_of(index); }
    std::int64_t channels(std::size_t index) const override { return reader.channels(index); }
    std::size_t parts(std::size_t index, const voxel_box& box) const override {
      return detail::parts_of(reader, index, box);
    }
    void read_part(std::size_t index, const voxel_box& box, std::size_t part, T* to) const override {
      detail::read_part_of(reader, index, box, part, to);
    }
    R reader;
  };

  std::shared_ptr<const reader_interface> reader_;
};

// Returns the grids of some cases of a reader, to plan a batch with.
template <box_reader R>
std::vector<grid> grids(const R& reader, const std::vector<std::size_t>& cases) {
  std::vector<grid> g;
  g.reserve(cases.size());
  for (const std::size_t index : cases) g.push_back(reader.grid_of(index));
  return g;
}

}  // namespace suture
