// SPDX-License-Identifier: Apache-2.0
// The samples whose digests are taken, and the line that reports them.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <suture/suture.hpp>

namespace digest_test {

using namespace suture;

// Axes as they lie in memory, the densest last.
using axis_order = std::array<int, 3>;

// A view whose axes lie in this order, as dense as before.
template <class T>
view<T> lying(view<T> v, const axis_order& order) {
  std::int64_t step = v.stride[2];
  for (int j = 2; j >= 0; --j) {
    v.stride[order[static_cast<std::size_t>(j)]] = step;
    step *= v.grid.extents[order[static_cast<std::size_t>(j)]];
  }
  return v;
}

// The elements of a dense view (z, y, x) with all its channels, for one whose axes lie in another order.
template <class T>
std::vector<T> reordered(const view<const T>& from, const axis_order& order) {
  const extent3& n = from.grid.extents;
  std::vector<T> elements(static_cast<std::size_t>(from.channels * from.grid.voxels()));
  view<T> to{elements.data(), from.grid, from.stride, from.channels, from.channel_stride};
  to = lying(to, order);
  for (std::int64_t c = 0; c < from.channels; ++c)
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x)
          to.data[c * to.channel_stride + z * to.stride[0] + y * to.stride[1] + x * to.stride[2]] =
              from.data[c * from.channel_stride + z * from.stride[0] + y * from.stride[1] + x * from.stride[2]];
  return elements;
}

// Three small CT-like volumes with label maps, of different size, spacing and orientation.
struct cases {
  using element = std::int16_t;
  static constexpr std::int64_t channels = 2;
  static constexpr std::uint32_t which = 0;  // image of the samples
  static view<const element> source(const element* data, const grid& g) { return contiguous(data, g, channels); }

  std::vector<grid> grids;
  std::vector<std::vector<std::int16_t>> images;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<std::uint64_t> ids{1234567890123ull, 7, 42};
  axis_order axes{0, 1, 2};  // of all arrays

  cases() {
    const extent3 sizes[3] = {{21, 40, 37}, {33, 31, 48}, {17, 52, 45}};
    const point3 spacings[3] = {{2.5, 0.8, 0.8}, {1, 1, 1}, {3, 0.9, 1.1}};
    for (int i = 0; i < 3; ++i) {
      grid g;
      g.extents = sizes[i];
      g.spacing = spacings[i];
      g.origin = {-20.5 * i, 10, 3};
      if (i == 1) g.direction = {{{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}};
      if (i == 2) g.direction = {{{0.8, -0.6, 0}, {0.6, 0.8, 0}, {0, 0, 1}}};
      grids.push_back(g);
      const auto n = static_cast<std::size_t>(g.voxels());
      std::vector<std::int16_t> image(2 * n);
      std::vector<std::uint8_t> label(n);
      for (std::size_t v = 0; v < 2 * n; ++v) {
        const std::uint64_t h = mix64(v * 3 + static_cast<std::uint64_t>(i));
        image[v] = static_cast<std::int16_t>(static_cast<int>(h % 600) - 300 + static_cast<int>(v / 37 % 400));
        if (v < n) label[v] = static_cast<std::uint8_t>((v / 5 % 3) + (h % 11 == 0 ? 1 : 0));
      }
      images.push_back(image);
      labels.push_back(label);
    }
  }
};

// The same voxels as another image of the same samples, a PET beside the CT say: with noise of its own.
struct second_image : cases {
  static constexpr std::uint32_t which = 1;
};

// Four small stained tiles, interleaved, with annotation masks; the last one of two planes.
struct color_cases {
  using element = std::uint8_t;
  static constexpr std::int64_t channels = 3;
  static constexpr std::uint32_t which = 0;
  static view<const element> source(const element* data, const grid& g) { return channels_last(data, g, channels); }

  std::vector<grid> grids;
  std::vector<std::vector<std::uint8_t>> images;
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<std::uint64_t> ids{99, 5, 12345678901ull, 31};
  axis_order axes{0, 1, 2};  // of all arrays

  color_cases() {
    const extent3 sizes[4] = {{1, 40, 57}, {1, 33, 97}, {1, 64, 32}, {2, 36, 43}};
    for (std::size_t i = 0; i < 4; ++i) {
      grids.push_back({.extents = sizes[i], .spacing = {20, 1, 1}});
      const auto n = static_cast<std::size_t>(grids[i].voxels());
      std::vector<std::uint8_t> image(3 * n), label(n);
      for (std::size_t v = 0; v < n; ++v) {
        const std::uint64_t h = mix64(v * 4 + i);
        // From white to a deep purple, each channel with a little of its own, and now and then black or white.
        const std::uint64_t stain = (v / 7 * 5 + h % 16) % 120;
        for (std::size_t c = 0; c < 3; ++c)
          image[3 * v + c] =
              static_cast<std::uint8_t>(235 - stain * (c == 1 ? 16 : 11 - 2 * c) / 10 + (h >> (8 * c + 8)) % 16);
        if (h % 97 == 0) image[3 * v] = image[3 * v + 1] = image[3 * v + 2] = h % 2 == 0 ? 0 : 255;
        label[v] = static_cast<std::uint8_t>(v / 9 % 3);
      }
      images.push_back(image);
      labels.push_back(label);
    }
  }
};

// One line per pipeline: the digests of images and labels over the whole batch.
struct line {
  std::string name;
  std::uint64_t images = 0, labels = 0;
  void print() const {
    std::printf("%-24s %016llx %016llx\n", name.c_str(), static_cast<unsigned long long>(images),
                static_cast<unsigned long long>(labels));
  }
};

// The same samples in arrays of another order.
template <class Cases>
Cases in_order(Cases data, const axis_order& axes) {
  data.axes = axes;
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    data.images[i] = reordered(Cases::source(data.images[i].data(), data.grids[i]), axes);
    data.labels[i] = reordered(contiguous<const std::uint8_t>(data.labels[i].data(), data.grids[i]), axes);
  }
  return data;
}

// Pipelines that run in every order of axes: a displacement with noise, fields over the grid, and stages.
inline bool runs_in_every_order(std::string_view name) {
  return name == "ct" || name == "artifacts" || name == "nnunet";
}

// Prints digest_of(data); false where arrays in another order of axes have other digests.
template <class Cases, class DigestOf>
bool print(const Cases& data, const DigestOf& digest_of) {
  const line plain = digest_of(data);
  plain.print();
  if (!runs_in_every_order(plain.name)) return true;
  bool same = true;
  for (const axis_order& axes : {axis_order{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    const line other = digest_of(in_order(data, axes));
    if (other.images == plain.images && other.labels == plain.labels) continue;
    same = false;
    std::printf("%s differs in order %d %d %d\n", plain.name.c_str(), axes[0], axes[1], axes[2]);
  }
  return same;
}

}  // namespace digest_test
