// SPDX-License-Identifier: Apache-2.0
// A POD view of an image or label map in memory the caller owns: pointer, grid, strides, channels.
// Strides count elements, so channels-first, channels-last and padded rows are all just strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "distinct_elements.hpp"
#include "grid.hpp"

namespace suture {

template <class T>
struct view {
  T* data = nullptr;
  suture::grid grid{};
  // Elements between neighbors along z, y, x. A view that is read may repeat elements, by a stride of 0 as from
  // PyTorch's expand() and NumPy's broadcast_to; a view that is written holds every element once.
  extent3 stride{0, 0, 0};
  std::int64_t channels = 1;
  std::int64_t channel_stride = 0;
  // The voxels in memory, if only part of the grid is: a box of size 0 means all of them. `data` is then the address
  // that voxel (0, 0, 0) would have. A run reads such a view if its box contains source_box(plan, sample).
  voxel_box box{};

  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) operator view<U>() const {
    return {data, grid, stride, channels, channel_stride, box};
  }
};

// Tests whether only a box of the grid lies in memory.
template <class T>
bool is_partial(const view<T>& v) {
  return v.box.size[0] != 0;
}

// The voxels of a view that lie in memory.
template <class T>
voxel_box box_in_memory(const view<T>& v) {
  return is_partial(v) ? v.box : voxel_box{{0, 0, 0}, v.grid.extents};
}

namespace detail {
// Returns the address of the voxel with the lowest indices that lies in memory, in the first channel.
template <class T>
std::uintptr_t first_address(const view<T>& v) {
  std::uint64_t elements = 0;
  for (int k = 0; k < 3; ++k)
    elements += static_cast<std::uint64_t>(v.box.first[k]) * static_cast<std::uint64_t>(v.stride[k]);
  return reinterpret_cast<std::uintptr_t>(v.data) + static_cast<std::uintptr_t>(elements * sizeof(T));
}
// Sets `data` so that the first voxel in memory has the given address.
template <class T>
void place_first_voxel(view<T>& v, std::uintptr_t address) {
  v.data = nullptr;
  v.data = reinterpret_cast<T*>(address - first_address(v));
}

// Multiplies without undefined behavior: invalid extents or channels, which check() refuses later, may overflow.
inline std::int64_t stride_over(std::int64_t count, std::int64_t stride) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(stride));
}

inline void check_box(const voxel_box& box, const extent3& extents, const site& where, std::string_view role = "") {
  for (int k = 0; k < 3; ++k)
    require(box.size[k] > 0 && box.first[k] >= 0 && box.first[k] <= extents[k] - box.size[k], where, role,
            "box: expected voxels within the extents ", extents, ", got ", box.size, " voxels from ", box.first);
}
}  // namespace detail

inline void check_channels(std::int64_t channels, const site& where, std::string_view role = "") {
  require(channels > 0 && channels <= 65535, where, role, "channels ", channels, " must be in 1..65535");
}

// Channels-first, x fastest, no padding.
template <class T>
view<T> contiguous(T* data, const grid& geometry, std::int64_t channels = 1) {
  const extent3& n = geometry.extents;
  const std::int64_t plane = detail::stride_over(n[1], n[2]);
  return {data, geometry, {plane, n[2], 1}, channels, detail::stride_over(n[0], plane)};
}

// A box of an image, channels-first, x fastest, no padding: `data` is the address of its first voxel.
template <class T>
view<T> partial_view(T* data, const grid& whole, const voxel_box& box, std::int64_t channels = 1) {
  detail::check_box(box, whole.extents, {"partial_view"});
  const extent3& n = box.size;
  const std::int64_t plane = detail::stride_over(n[1], n[2]);
  view<T> v{data, whole, {plane, n[2], 1}, channels, detail::stride_over(n[0], plane), box};
  detail::place_first_voxel(v, reinterpret_cast<std::uintptr_t>(data));
  return v;
}

// Channels-last (interleaved), no padding.
template <class T>
view<T> channels_last(T* data, const grid& geometry, std::int64_t channels) {
  const extent3& n = geometry.extents;
  const std::int64_t row = detail::stride_over(n[2], channels);
  return {data, geometry, {detail::stride_over(n[1], row), row, channels}, channels, 1};
}

namespace detail {
// Returns make(first element, grid, channels) for each sample.
template <class T, class Make>
std::vector<view<T>> views_of_batch(std::string_view name, T* data, std::span<const grid> grids, std::int64_t channels,
                                    const Make& make) {
  std::vector<view<T>> views;
  views.reserve(grids.size());
  suture::check_channels(channels, {name});
  for (const grid& g : grids) {
    const site where{name, static_cast<std::int64_t>(views.size())};
    check(g, where, views.empty() ? nullptr : &grids.front());
    require(g.extents == grids.front().extents, where, "extents ", g.extents, " differ from ", grids.front().extents,
            " of the first sample, and one tensor has samples of one size. End the geometry with a crop, or bind a "
            "view for each");
    views.push_back(make(data + static_cast<std::int64_t>(views.size()) * channels * g.voxels(), g, channels));
  }
  return views;
}
}  // namespace detail

// The views of a dense (sample, channel, z, y, x) tensor, one per grid; every grid has the same extents.
template <class T>
std::vector<view<T>> batch_views(T* data, std::span<const grid> grids, std::int64_t channels = 1) {
  return detail::views_of_batch("batch_views", data, grids, channels, contiguous<T>);
}

// The views of a dense (sample, z, y, x, channel) tensor, the memory of PyTorch's channels_last_3d, one per grid.
template <class T>
std::vector<view<T>> batch_views_channels_last(T* data, std::span<const grid> grids, std::int64_t channels) {
  return detail::views_of_batch("batch_views_channels_last", data, grids, channels, channels_last<T>);
}

namespace detail {
template <class T>
constexpr bool is_view_v = false;
template <class T>
constexpr bool is_view_v<view<T>> = true;
}  // namespace detail

// The byte addresses of a view, from its first byte to one past its last.
struct byte_range {
  std::uintptr_t first = 0, last = 0;
};

template <class T>
byte_range bytes(const view<T>& v) {
  std::int64_t low = 0, high = 0;
  const auto reach = [&](std::int64_t count, std::int64_t stride) {
    const std::int64_t end = (count - 1) * stride;
    (end < 0 ? low : high) += end;
  };
  const extent3 extents = box_in_memory(v).size;
  for (int k = 0; k < 3; ++k) reach(extents[k], v.stride[k]);
  reach(v.channels, v.channel_stride);
  const std::uintptr_t base = detail::first_address(v);
  const auto size = static_cast<std::int64_t>(sizeof(T));
  return {base + static_cast<std::uintptr_t>(low * size), base + static_cast<std::uintptr_t>((high + 1) * size)};
}

namespace detail {

// Byte addresses of the elements of a view, along z, y, x and channels. `element` is the size of one.
struct lattice {
  std::uintptr_t first;
  std::int64_t element;
  std::int64_t count[4], stride[4];
};
template <class T>
lattice lattice_of(const view<T>& v) {
  lattice l{first_address(v), static_cast<std::int64_t>(sizeof(T)), {}, {}};
  const extent3 extents = box_in_memory(v).size;
  for (int k = 0; k < 4; ++k) {
    l.count[k] = k < 3 ? extents[k] : v.channels;
    l.stride[k] = (k < 3 ? v.stride[k] : v.channel_stride) * l.element;
  }
  return l;
}

// A search for differences of indices, along axes of falling stride, whose steps sum to the distance between two views.
struct lattice_steps {
  struct axis {
    std::int64_t stride, low, high;  // of differences
  };
  std::array<axis, 4> axes{};  // the first `count` are used
  std::size_t count = 0;
  int budget = 256;  // steps before the search gives up and returns true; parts of one array need few

  // Tests whether steps along the axes from K on sum to `distance`.
  template <std::size_t K = 0>
  bool reach(std::int64_t distance) {
    if constexpr (K == 4) {
      return distance == 0;
    } else {
      if (K == count) return distance == 0;
      std::int64_t rest_low = 0, rest_high = 0;
      for (std::size_t j = K + 1; j < 4; ++j) {
        rest_low += axes[j].low * axes[j].stride;
        rest_high += axes[j].high * axes[j].stride;
      }
      const axis& a = axes[K];
      const auto floor_of = [&](std::int64_t n) { return n / a.stride - (n % a.stride < 0 ? 1 : 0); };
      const std::int64_t last = std::min(a.high, floor_of(distance - rest_low));
      for (std::int64_t t = std::max(a.low, -floor_of(rest_high - distance)); t <= last; ++t)
        if (--budget < 0 || reach<K + 1>(distance - t * a.stride)) return true;
      return false;
    }
  }
};

// Tests whether two views, whose byte ranges overlap, share an element. The answer is exact for views of equal strides,
// such as slices of a volume, unless the search gives up; all others count as sharing.
inline bool share_memory(const lattice& a, const lattice& b) {
  if (a.element != b.element) return true;
  lattice_steps steps;
  for (int k = 0; k < 4; ++k) {
    // The stride of a single voxel says nothing, and a stride of 0 repeats one element.
    const std::int64_t of_a = a.stride[k] == 0 ? 1 : a.count[k], of_b = b.stride[k] == 0 ? 1 : b.count[k];
    if (of_a == 1 && of_b == 1) continue;
    if (of_a > 1 && of_b > 1 && a.stride[k] != b.stride[k]) return true;
    const std::int64_t stride = of_a > 1 ? a.stride[k] : b.stride[k];
    const std::int64_t low = 1 - of_b, high = of_a - 1;
    auto& axis = steps.axes[steps.count++];
    if (stride > 0)
      axis = {stride, low, high};
    else
      axis = {-stride, -high, -low};
  }
  std::sort(steps.axes.begin(), steps.axes.end(),
            [](const auto& one, const auto& other) { return one.stride > other.stride; });
  const auto distance = static_cast<std::int64_t>(b.first - a.first);
  return distance % a.element != 0 || steps.reach(distance);
}

}  // namespace detail

// Checks a view of which perhaps only a box lies in memory. `role` is a word for messages, such as "output: ", where a
// sample has several views.
template <class T>
void check_partial(const view<T>& v, const site& where, std::string_view role = "") {
  require(detail::first_address(v) != 0, where, role, "null pointer");
  require(reinterpret_cast<std::uintptr_t>(v.data) % alignof(T) == 0, where, role, "pointer ",
          static_cast<const void*>(v.data), " is not aligned to ", alignof(T), " bytes");
  check(v.grid, where, nullptr, role);
  suture::check_channels(v.channels, where, role);
  constexpr std::int64_t furthest = std::int64_t{1} << 58;
  std::int64_t reach = 1;
  const auto extend = [&](std::int64_t count, std::int64_t stride) {
    std::int64_t span = 0;
    const bool has_size = stride > -furthest && stride < furthest;  // the lowest integer has no positive counterpart
    require(has_size && !__builtin_mul_overflow(count - 1, stride < 0 ? -stride : stride, &span) &&
                !__builtin_add_overflow(reach, span, &reach) && reach < furthest,
            where, role, "extents ", v.grid.extents, " with strides ", v.stride, " and ", v.channels,
            " channels with channel_stride ", v.channel_stride, " span 2^58 elements or more");
  };
  for (int k = 0; k < 3; ++k) extend(v.grid.extents[k], v.stride[k]);
  extend(v.channels, v.channel_stride);
  const bool has_box = !(v.box.first == extent3{0, 0, 0} && v.box.size == extent3{0, 0, 0});
  if (has_box) detail::check_box(v.box, v.grid.extents, where, role);
}

// Checks a view that is read as a whole.
template <class T>
void check(const view<T>& v, const site& where, std::string_view role = "") {
  check_partial(v, where, role);
  require(!is_partial(v), where, role, "expected the whole image in memory, got a box of ", v.box.size,
          " voxels. Pass all of it; only run() of a plan reads boxes");
}

// Checks that no two voxels or channels of a written view are the same element; otherwise the stored value would depend
// on the order of writes.
template <class T>
void check_writable(const view<T>& v, const site& where, std::string_view role = "") {
  check(v, where, role);
  for (int k = 0; k < 3; ++k)
    require(v.stride[k] != 0 || v.grid.extents[k] == 1, where, role, "strides ", v.stride, " for extents ",
            v.grid.extents,
            ": a stride of 0 makes one element of all voxels along an axis; contiguous() and "
            "channels_last() fill them in");
  require(v.channel_stride != 0 || v.channels == 1, where, role, "channel_stride 0 for ", v.channels,
          " channels makes one of them; contiguous() and channels_last() fill it in");
  const detail::lattice l = detail::lattice_of(v);
  require(!detail::repeats_elements(l.count, l.stride), where, role, "strides ", v.stride, " and channel_stride ",
          v.channel_stride, " for extents ", v.grid.extents, " and ", v.channels,
          v.channels == 1 ? " channel" : " channels",
          " lay several voxels onto one element, so what it holds in the end would be up to chance");
}

}  // namespace suture
