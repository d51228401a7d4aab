// SPDX-License-Identifier: Apache-2.0
// The images and label maps of a case: ragged sizes, spacings, orientations, strides of every kind, values of several.
#pragma once

#include "numbers.hpp"

namespace fuzz {

// Where the elements of an image lie: in what order, backwards along which axes, with how much room between.
struct memory_layout {
  int order[4] = {0, 1, 2, 3};  // channel, z, y, x: from the slowest to the fastest
  bool backwards[4] = {};
  std::int64_t gap[4] = {1, 1, 1, 1};  // elements more, between neighbors along the axis

  static memory_layout dense() { return {}; }
  static memory_layout any(const numbers& n, int slot) {
    memory_layout l;
    const auto how = n.below(6, slot);
    if (how == 0) return l;
    if (how == 1) {  // channels last
      const int last[] = {1, 2, 3, 0};
      std::copy(last, last + 4, l.order);
      return l;
    }
    if (how >= 3)
      for (int k = 3; k > 0; --k) std::swap(l.order[k], l.order[n.below(k + 1, slot, 1 + k)]);
    for (int k = 0; k < 4; ++k) {
      if (how != 3) l.backwards[k] = n.below(3, slot, 8 + k) == 0;
      if (how != 4) l.gap[k] = n.below(4, slot, 16 + k) == 0 ? 1 + n.below(3, slot, 24 + k) : 1;
    }
    return l;
  }

  // The view, and how many elements it needs from its lowest on.
  template <class T>
  suture::view<T> view(T* memory, const suture::grid& g, std::int64_t channels, std::int64_t* needed = nullptr) const {
    const std::int64_t count[4] = {channels, g.extents[0], g.extents[1], g.extents[2]};
    std::int64_t stride[4], step = 1, first = 0;
    for (int i = 3; i >= 0; --i) {
      const int k = order[i];
      stride[k] = step * gap[k];
      step = stride[k] * count[k] + (gap[k] > 1 ? 1 : 0);
    }
    for (int k = 0; k < 4; ++k)
      if (backwards[k]) {
        first += (count[k] - 1) * stride[k];
        stride[k] = -stride[k];
      }
    if (needed != nullptr) *needed = step + 1;
    suture::view<T> v = suture::contiguous(memory, g, channels);
    v.data = memory + first;
    v.channel_stride = stride[0];
    for (int k = 0; k < 3; ++k) v.stride[k] = stride[k + 1];
    return v;
  }
  template <class T>
  std::size_t elements(const suture::grid& g, std::int64_t channels) const {
    std::int64_t needed = 0;
    view<T>(nullptr, g, channels, &needed);
    return static_cast<std::size_t>(needed);
  }
};

template <class T>
T& element(const suture::view<T>& v, std::int64_t channel, std::int64_t z, std::int64_t y, std::int64_t x) {
  return v.data[channel * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2]];
}
template <class F>
void each_voxel(const suture::extent3& n, std::int64_t channels, const F& f) {
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x) f(c, z, y, x);
}

enum class content { noise, waves, constant, blocks, extremes };

// The image's element where it reads `value`, which is kept within its range.
template <class T>
T stored_value(double value) {
  if constexpr (std::is_integral_v<T>) {
    value = std::fmin(std::fmax(value, static_cast<double>(std::numeric_limits<T>::min())),
                      static_cast<double>(std::numeric_limits<T>::max()));
    if constexpr (sizeof(T) == 4) value = std::fmin(value, 2147483520.0);
    return static_cast<T>(value);
  } else {
    return suture::storage<T>::store(static_cast<float>(value));
  }
}

template <class T>
double value_at(content what, const numbers& n, int slot, const suture::extent3& size, std::int64_t c, std::int64_t z,
                std::int64_t y, std::int64_t x, bool color) {
  const std::int64_t place = ((c * size[0] + z) * size[1] + y) * size[2] + x;
  const double noise =
      static_cast<double>(suture::mix64(n.bits(slot) + static_cast<std::uint64_t>(place)) >> 40) * 0x1p-24;
  const auto d = [](std::int64_t i) { return static_cast<double>(i); };
  if (color) {
    if (what == content::constant) return 200 - 40 * d(c == 1);
    const double stain = 60 + 55 * std::sin(.3 * d(y) + .2 * d(z)) * std::cos(.21 * d(x) + d(slot));
    return std::floor(235 - stain * (c == 1 ? 1.4 : c == 0 ? 1 : .7) + 16 * noise);
  }
  switch (what) {
    case content::noise:
      return std::floor(1200 * noise - 500);
    case content::waves:
      return std::floor(300 * (std::sin(.5 * d(z) + d(c)) + std::cos(.35 * d(y)) + std::sin(.3 * d(x) - d(slot))));
    case content::constant:
      return 37;
    case content::blocks:
      return d((z / 3 + y / 4 + x / 5 + c) % 3) * 100 - 50;
    case content::extremes:
      break;
  }
  return noise < .4 ? -3e4 : noise < .8 ? 3e4 : noise < .9 ? 0 : std::floor(1000 * noise);
}

// What all that run a case are given.
template <class In, class Label>
struct inputs {
  std::int64_t channels, label_channels = 1;
  std::uint64_t seed;
  std::uint32_t epoch;
  bool evaluation;
  memory_layout in_layout, label_layout, out_layout, label_out_layout;
  std::vector<suture::grid> grids;
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<In>> images;
  std::vector<std::vector<Label>> labels;

  inputs(numbers& n, bool color, bool labels_have_channels) {
    constexpr int s = 1000;  // far from those of the chain
    channels = color ? 3 : 1 + n.below(3, s);
    if (labels_have_channels) label_channels = 1 + n.below(2, s + 1);
    seed = n.bits(s + 2);
    epoch = static_cast<std::uint32_t>(n.bits(s + 3));
    evaluation = n.below(12, s + 4) == 0;
    in_layout = memory_layout::any(n, s + 5);
    label_layout = memory_layout::any(n, s + 6);
    out_layout = memory_layout::any(n, s + 7);
    label_out_layout = memory_layout::any(n, s + 8);
    const auto samples = 1 + n.below(4, s + 9);
    const auto what = static_cast<content>(n.below(5, s + 10));
    for (int i = 0; i < samples; ++i) {
      const int slot = s + 20 + 10 * i;
      suture::grid g;
      // A run of samples of one grid is planned at once in parts.
      if (i > 0 && n.below(3, slot) == 0) {
        g = grids.back();
      } else {
        g.extents = edge_sizes[n.below(std::ssize(edge_sizes), slot, 1)];
        const double spacings[] = {1, 1, .75, 2.5, 1.3};
        for (int k = 0; k < 3; ++k) {
          g.spacing[k] = spacings[n.below(5, slot, 2 + k)];
          g.origin[k] = static_cast<double>(n.below(100, slot, 5 + k)) - 50;
        }
        const auto turned = n.below(4, slot, 8);
        if (turned == 1) g.direction = {{{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}};
        if (turned == 2) g.direction = {{{.8, -.6, 0}, {.6, .8, 0}, {0, 0, 1}}};
        if (turned == 3) g.direction = {{{0, 0, 1}, {0, -1, 0}, {1, 0, 0}}};
      }
      grids.push_back(g);
      ids.push_back(n.bits(slot, 9) >> n.below(60, slot, 10));
      images.emplace_back(in_layout.elements<In>(g, channels));
      const auto in = in_layout.view(images.back().data(), g, channels);
      each_voxel(g.extents, channels, [&](auto c, auto z, auto y, auto x) {
        element(in, c, z, y, x) = stored_value<In>(value_at<In>(what, n, slot + 1, g.extents, c, z, y, x, color));
      });
      labels.emplace_back(label_layout.elements<Label>(g, label_channels));
      const auto map = label_layout.view(labels.back().data(), g, label_channels);
      each_voxel(g.extents, label_channels, [&](auto c, auto z, auto y, auto x) {
        const auto h =
            suture::mix64(n.bits(slot + 2) + static_cast<std::uint64_t>((z / 2 * 64 + y / 2) * 64 + x / 3 + c));
        constexpr int of[] = {0, 0, 0, 1, 2, 3, 9, 100};
        element(map, c, z, y, x) = static_cast<Label>(of[h >> 61]);
      });
    }
  }
};

}  // namespace fuzz
