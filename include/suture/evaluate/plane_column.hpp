// SPDX-License-Identifier: Apache-2.0
// Columns of samples in which planes stay planes, as after resampling, crops, flips and rotations about z. Such a
// column reads the same voxels of every plane of the source. Their positions are computed once, and the values of a
// plane are kept for the voxels of the column that need them again. Every value still comes from exactly the arithmetic
// of a single voxel. Where columns run along y of the source (AlongY), the planes are those of y and their rows lie
// along z.
#pragma once

#include "../sample/sampler.hpp"
#include "column.hpp"

namespace suture::detail {

// Keeps the results of two neighboring planes of the source.
template <class Plane>
class kept_planes {
public:
  // Makes the results of planes `first` and `first` + 1 available. make(i) computes that of plane i, unless it is kept.
  template <class Make>
  SUTURE_FN void keep(std::int32_t first, const Make& make) {
    if (first == first_) return;
    const Plane low = planes_[0];
    planes_[0] = first == first_ + 1 ? planes_[1] : make(first);
    planes_[1] = first == first_ - 1 ? low : make(first + 1);
    first_ = first;
  }
  SUTURE_FN void forget() { first_ = none; }
  SUTURE_FN const Plane& operator[](int i) const { return planes_[i]; }

private:
  static constexpr std::int32_t none = -(1 << 30);  // beyond every coordinate
  Plane planes_[2];
  std::int32_t first_ = none;
};

// Returns i, but the compiler takes the result to depend on z, and so precomputes nothing of it before a loop over z
// for threads that never need it.
SUTURE_FN std::int32_t seen_from(std::int32_t z, std::int32_t i) {
#if defined(__CUDA_ARCH__)
  asm("" : "+r"(i) : "r"(z));
#else
  static_cast<void>(z);
#endif
  return i;
}

// Makes the compiler read all values of a plane before it uses the first. Otherwise it reads the second of two only if
// its weight is not 0, in a divergent branch.
SUTURE_FN void read_together(float (&v)[2][2]) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+f"(v[0][0]), "+f"(v[0][1]), "+f"(v[1][0]), "+f"(v[1][1]));
#else
  static_cast<void>(v);
#endif
}

// The voxels around a column: 2 x 2 in every plane of the volume at `data`.
template <class Border, class T>
class plane_cell {
public:
  SUTURE_FN plane_cell(const coordinate (&c)[3], const T* data, const source_tensor& s)
      : source_(s),
        y_(c[1].base),
        x_(c[2].base),
        rows_({0, y_, x_}, data, s.stride),
        inside_(inside(y_, s.pairs[1]) & inside(x_, s.pairs[2])) {}

  // Calls use(at), where at(b, j) is convert(element) of voxel (b, j) in plane z, or `outside` if the border rule has
  // none.
  template <class V, class Convert, class Use>
  SUTURE_FN auto plane(std::int32_t z, const Convert& convert, V outside, const Use& use) const {
    if (inside_ & inside(z, source_.extents[0])) {
      const char* const first = rows_.first + product(z, rows_.z);
      return use([&](int b, int j) -> V { return convert(reinterpret_cast<const T*>(first + b * rows_.y)[j]); });
    }
    const source_tensor& s = source_;
    const std::int32_t y = seen_from(z, y_), x = seen_from(z, x_);
    const std::int32_t iz = Border::index(z, s.extents[0]);
    const std::int32_t iy[2] = {Border::index(y, s.extents[1]), Border::index(y + 1, s.extents[1])};
    const std::int32_t ix[2] = {Border::index(x, s.extents[2]), Border::index(x + 1, s.extents[2])};
    return use([&](int b, int j) -> V {
      if constexpr (Border::has_value)
        if ((iz | iy[b] | ix[j]) < 0) return outside;
      const auto along = [&](int axis, std::int32_t i) {
        return product(i, static_cast<tap_offset<Border>>(s.stride[axis]));
      };
      // The offsets count from rows_.first, which assumes neighbors along x to be adjacent.
      return convert(reinterpret_cast<const T*>(rows_.first)[along(0, iz) + along(1, iy[b] - y) + along(2, ix[j]) - x]);
    });
  }

  // Moves to the next channel, `stride` elements further.
  SUTURE_FN void to_next_channel(std::int64_t stride) { rows_.first += stride * static_cast<std::int64_t>(sizeof(T)); }

private:
  const source_tensor& source_;
  std::int32_t y_, x_;
  inside_pairs<T, tap_offset<Border>> rows_;  // in plane 0
  bool inside_;                               // y and x are inside, and neighbors along x are adjacent
};

// Interpolated values of one channel of an image. T is the type of its voxels.
template <class Pipeline, class T, bool AlongY = false>
class plane_values {
  using I = typename Pipeline::interpolation_type;
  using Border = typename Pipeline::border_type;

public:
  static constexpr bool possible = std::is_same_v<I, linear> && !Pipeline::is_color &&
                                   !any_needs_voxel<typename Pipeline::source_functors> && !ends_at_rim<Border>;

  SUTURE_FN plane_values(const sample_parameters<Pipeline>& sample, const source_tensor& s, const T* data,
                         const coordinate (&c)[3], const Border& border)
      : sample_(sample), border_(border), cell_(c, data, s) {}

  SUTURE_FN float at(const coordinate (&c)[3]) {
    planes_.keep(c[0].base, [&](std::int32_t z) { return plane(z, c); });
    if constexpr (AlongY) {
      const rows &first = planes_[0], &second = planes_[1];
      return blend(blend(first.at[0], second.at[0], c[0]), blend(first.at[1], second.at[1], c[0]), c[1]);
    } else {
      return blend(planes_[0], planes_[1], c[0]);
    }
  }
  SUTURE_FN void to_next_channel(std::int64_t stride) {
    cell_.to_next_channel(stride);
    planes_.forget();
  }

private:
  // Both rows of a plane, interpolated along x; interpolation along y follows between planes.
  struct rows {
    float at[2];
  };
  using plane_type = std::conditional_t<AlongY, rows, float>;

  SUTURE_FN static float blend(float first, float second, const coordinate& c) {
    float w[2];
    I::weights(c.fraction, w);
    return I::combine({first, second}, w);
  }

  SUTURE_FN plane_type plane(std::int32_t z, const coordinate (&c)[3]) const {
    float outside = 0;
    if constexpr (Border::has_value) outside = border_.value;
    return cell_.plane(
        z, [&](T v) { return apply(sample_.source_functors, storage<T>::load(v), voxel{}); }, outside,
        [&](const auto& at) -> plane_type {
          if constexpr (AlongY) {
            float v[2][2] = {{at(0, 0), at(0, 1)}, {at(1, 0), at(1, 1)}};
            read_together(v);
            return {{blend(v[0][0], v[0][1], c[2]), blend(v[1][0], v[1][1], c[2])}};
          } else {
            return combine_plane<float, I>(c, at);
          }
        });
  }

  const sample_parameters<Pipeline>& sample_;
  const Border& border_;
  plane_cell<Border, T> cell_;
  kept_planes<plane_type> planes_;
};

// Labels of one channel of a label map, by the interpolation Labels.
template <class Labels, class Border, class T>
class plane_labels {
public:
  SUTURE_FN plane_labels(const source_tensor& s, const T* data, const coordinate (&)[3], T outside)
      : source_(s), data_(data), outside_(outside) {}
  SUTURE_FN T at(const coordinate (&c)[3]) const {
    return sample_label<Labels, Border>(c, data_, source_.stride, source_.extents, source_.pairs, outside_);
  }
  SUTURE_FN void to_next_channel(std::int64_t stride) { data_ += stride; }

private:
  const source_tensor& source_;
  const T* data_;
  T outside_;
};

// Interpolations that pick a voxel.
template <class Labels, class Border, class T>
requires(Labels::taps == 1) class plane_labels<Labels, Border, T> {
public:
  SUTURE_FN plane_labels(const source_tensor& s, const T* data, const coordinate (&c)[3], T outside)
      : source_(s), column_(data), outside_(outside) {
    const std::int32_t y = Border::index(Labels::first(c[1]), s.extents[1]);
    const std::int32_t x = Border::index(Labels::first(c[2]), s.extents[2]);
    inside_ = (y | x) >= 0;
    if (inside_) column_ += y * s.stride[1] + x * s.stride[2];
  }
  SUTURE_FN T at(const coordinate (&c)[3]) const {
    const std::int32_t z = Border::index(Labels::first(c[0]), source_.extents[0]);
    return (inside_ & (z >= 0)) ? column_[product(z, static_cast<tap_offset<Border>>(source_.stride[0]))] : outside_;
  }
  SUTURE_FN void to_next_channel(std::int64_t stride) { column_ += stride; }

private:
  const source_tensor& source_;
  const T* column_;
  bool inside_;
  T outside_;
};

template <class Border, class T>
class plane_labels<vote, Border, T> {
public:
  SUTURE_FN plane_labels(const source_tensor& s, const T* data, const coordinate (&c)[3], T outside)
      : cell_(c, data, s), outside_(outside) {}

  SUTURE_FN T at(const coordinate (&c)[3]) {
    const auto itself = [](T label) { return label; };
    // At the center of a voxel that voxel has all the weight.
    if ((c[0].fraction == 0.0f) & (c[1].fraction == 0.0f) & (c[2].fraction == 0.0f))
      return cell_.plane(c[0].base, itself, outside_, [](const auto& at) { return at(0, 0); });
    planes_.keep(c[0].base, [&](std::int32_t z) {
      return cell_.plane(z, itself, outside_, [](const auto& at) { return corners(at); });
    });
    const corners &first = planes_[0], &second = planes_[1];
    T labels[8];
    SUTURE_UNROLL
    for (int i = 0; i < 4; ++i) {
      labels[i] = first.label[i];
      labels[4 + i] = second.label[i];
    }
    return vote_label(labels, first.low < second.low ? first.low : second.low,
                      first.high > second.high ? first.high : second.high,
                      {c[0].fraction, c[1].fraction, c[2].fraction});
  }
  SUTURE_FN void to_next_channel(std::int64_t stride) {
    cell_.to_next_channel(stride);
    planes_.forget();
  }

private:
  // The labels at the corners of a cell that lie in one plane.
  struct corners {
    T label[4], low, high;

    corners() = default;
    template <class At>
    SUTURE_FN explicit corners(const At& at) : label{at(0, 0), at(0, 1), at(1, 0), at(1, 1)} {
      low = high = label[0];
      SUTURE_UNROLL
      for (int i = 1; i < 4; ++i) {
        low = label[i] < low ? label[i] : low;
        high = label[i] > high ? label[i] : high;
      }
    }
  };

  plane_cell<Border, T> cell_;
  kept_planes<corners> planes_;
  T outside_;
};

}  // namespace suture::detail
