// SPDX-License-Identifier: Apache-2.0
// Gray erosion and dilation: the minimum and the maximum of a neighborhood.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "loops.hpp"
#include "structuring_element.hpp"

namespace suture {

namespace detail::masks {

// Tests whether b replaces a, since it is more extreme or a is NaN. Integers are compared as integers, other types as
// float.
template <class T>
SUTURE_FN bool is_further(T a, T b, bool greatest) {
  if constexpr (std::is_integral_v<T>) {
    return greatest ? b > a : b < a;
  } else {
    const float x = storage<T>::load(a), y = storage<T>::load(b);
    return x != x || (greatest ? y > x : y < x);
  }
}

// Finds the extreme value of the element, starting with the voxel itself and then in the order of (dz, dy, dx). The
// host calls row for each row, a device operator() for each voxel.
template <class T>
struct find_extremes {
  strided<const T> in;
  strided<T> out;
  std::int32_t extents[3];
  element_rows element;
  bool greatest;
  bool has_border;
  T border;

  SUTURE_FN bool is_row(std::int32_t z, std::int32_t y) const {
    return z >= 0 && z < extents[0] && y >= 0 && y < extents[1];
  }

  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    T value = *in.at(z, y, x);
    for (std::int32_t dz = -element.z; dz <= element.z; ++dz)
      for (std::int32_t dy = -element.y; dy <= element.y; ++dy) {
        const std::int32_t half = element.half_width(dz, dy);
        const bool row_is_inside = is_row(z + dz, y + dy);
        for (std::int32_t dx = -half; dx <= half; ++dx) {
          const bool is_inside = row_is_inside && x + dx >= 0 && x + dx < extents[2];
          if (!is_inside && !has_border) continue;
          const T other = is_inside ? *in.at(z + dz, y + dy, x + dx) : border;
          value = is_further(value, other, greatest) ? other : value;
        }
      }
    *out.at(z, y, x) = value;
  }

  void row(std::int32_t z, std::int32_t y) const {
    if (in.stride[2] == 1 && out.stride[2] == 1) {
      using one = std::integral_constant<std::int64_t, 1>;
      greatest ? fold<true>(z, y, one{}, one{}) : fold<false>(z, y, one{}, one{});
    } else {
      greatest ? fold<true>(z, y, in.stride[2], out.stride[2]) : fold<false>(z, y, in.stride[2], out.stride[2]);
    }
  }

  template <bool Greatest, class InStride, class OutStride>
  void fold(std::int32_t z, std::int32_t y, InStride in_stride, OutStride out_stride) const {
    const std::int32_t n = extents[2];
    T* const to = out.at(z, y, 0);
    const T* const center = in.at(z, y, 0);
    for (std::int32_t x = 0; x < n; ++x) to[x * out_stride] = center[x * in_stride];
    const auto outside = [&](std::int32_t first, std::int32_t end) {
      if (!has_border) return;
      for (std::int32_t x = first; x < end; ++x)
        if (is_further(to[x * out_stride], border, Greatest)) to[x * out_stride] = border;
    };
    for (std::int32_t dz = -element.z; dz <= element.z; ++dz)
      for (std::int32_t dy = -element.y; dy <= element.y; ++dy) {
        const std::int32_t half = element.half_width(dz, dy);
        if (half < 0) continue;
        if (!is_row(z + dz, y + dy)) {
          outside(0, n);
          continue;
        }
        const T* const from = in.at(z + dz, y + dy, 0);
        for (std::int32_t dx = -half; dx <= half; ++dx) {
          const std::int32_t first = std::min(n, std::max(0, -dx)), end = std::max(first, std::min(n, n - dx));
          outside(0, first);
          for (std::int32_t x = first; x < end; ++x) {
            const T here = to[x * out_stride], other = from[(x + dx) * in_stride];
            to[x * out_stride] = is_further(here, other, Greatest) ? other : here;
          }
          outside(end, n);
        }
      }
  }
};

// Returns the radii of the passes of an element: a box takes one pass per axis, other shapes one in all.
inline std::vector<extent3> passes_of(const structuring_element& e) {
  if (e.shape != element_shape::box) return {e.radius};
  std::vector<extent3> passes;
  for (int k = 0; k < 3; ++k) {
    if (e.radius[k] == 0) continue;
    passes.push_back({0, 0, 0});
    passes.back()[k] = e.radius[k];
  }
  if (passes.empty()) passes.push_back({0, 0, 0});
  return passes;
}

// Returns the border value in the storage type, or throws if that does not represent it.
template <class T>
T gray_border(double value, const site& where) {
  if constexpr (std::is_integral_v<T>) {
    require(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                value <= static_cast<double>(std::numeric_limits<T>::max()) && value == std::floor(value),
            where, "border value ", value, " is not a ", storage_name<T>());
    return static_cast<T>(value);
  } else {
    require(!std::isnan(value), where, "border value must be a number");
    require(std::isinf(value) || detail::finite_as<T>(value), where, "border value ", value, " is not a ",
            storage_name<T>());
    return storage<T>::store(static_cast<float>(value));
  }
}

// Returns a function that computes from extents how many bytes the intermediate results of a sample of type T take.
template <class T>
auto gray_morphology_bytes(const structuring_element& e) {
  return [between = passes_of(e).size() - 1](const extent3& n) {
    arena measure;
    for (std::size_t i = 0; i < between; ++i) measure.allocate<T>(static_cast<std::size_t>(n[0] * n[1] * n[2]));
    return measure.used();
  };
}

template <class Executor, class In, class Out>
void gray_morphology(const Executor& exec, const In& inputs, const Out& outputs, std::string_view name,
                     const structuring_element& e, const std::optional<double>& border_value, bool greatest) {
  using T = std::remove_const_t<view_element_t<In>>;
  static_assert(std::is_same_v<view_element_t<Out>, T>, "suture: gray morphology writes the type it reads");
  const auto in = as_views(inputs);
  const auto out = as_views(outputs);
  check(e, {name});
  check_mask_views(in, out, name, false);
  mask_loops<Executor>::check_memory_of(exec, in, {name}, "input: ");
  mask_loops<Executor>::check_memory_of(exec, out, {name}, "output: ");
  const T border = border_value ? gray_border<T>(*border_value, {name}) : T{};
  const std::vector<extent3> passes = passes_of(e);
  const auto bytes = bytes_by_sample(in, gray_morphology_bytes<T>(e));
  mask_loops<Executor>::run(exec, bytes, {name}, [&](auto& loops, arena& memory, std::size_t i) {
    const extent3& n = in[i].grid.extents;
    strided<const T> from = strided_of<const T>(in[i]);
    for (std::size_t p = 0; p < passes.size(); ++p) {
      const bool is_last = p + 1 == passes.size();
      strided<T> to = strided_of(out[i]);
      if (!is_last) {
        const extent3 between = loops.strides_between(n, to.stride);
        to = {memory.allocate<T>(static_cast<std::size_t>(n[0] * n[1] * n[2])),
              {between[0], between[1], between[2]},
              1,
              0};
      }
      find_extremes<T> find{from, to, {}, rows_of(e.shape, passes[p]), greatest, border_value.has_value(), border};
      for (int k = 0; k < 3; ++k) find.extents[k] = static_cast<std::int32_t>(n[k]);
      loops.rows_or_voxels(find.extents, from.stride, find);  // in the order of the input, which is read more often
      from = {to.data, {to.stride[0], to.stride[1], to.stride[2]}, 1, 0};
    }
  });
}

}  // namespace detail::masks

namespace mask_work {
// No workspace for a cross, a ball or a box along one axis; a box along more axes takes one or two copies of the
// samples.
struct gray_erosion {
  structuring_element element{};
  template <class T>
  auto bytes_of() const {
    return detail::masks::gray_morphology_bytes<T>(element);
  }
};
using gray_dilation = gray_erosion;
}  // namespace mask_work

// gray_erosion: the minimum over the element centered at each voxel; gray_dilation: the maximum.
//   in, out       views of the same storage type, one channel; may not overlap
//   border_value  the value of voxels outside the volume. Without one they do not count, which gives the results of
//                 scipy's modes reflect, nearest and mirror
// A NaN does not count unless the element contains nothing else. If both -0 and +0 are extreme, the result is either.
// Errors: those of the element, a border value that the type cannot represent, views that do not match or overlap,
// more than 2^32 - 2 voxels, a workspace too small. Source: scipy.ndimage.gray_erosion, gray_dilation.
template <class Executor, class In, class Out>
void gray_erosion(const Executor& exec, const In& in, const Out& out, const structuring_element& element = {},
                  const std::optional<double>& border_value = {}) {
  detail::masks::gray_morphology(exec, in, out, "gray_erosion", element, border_value, false);
}
template <class Executor, class In, class Out>
void gray_dilation(const Executor& exec, const In& in, const Out& out, const structuring_element& element = {},
                   const std::optional<double>& border_value = {}) {
  detail::masks::gray_morphology(exec, in, out, "gray_dilation", element, border_value, true);
}

}  // namespace suture
