// SPDX-License-Identifier: Apache-2.0
// Value functors over a strip: 32 voxels, its lanes, next to each other along the innermost loop axis. The values of a
// strip are arrays, whose loops compilers vectorize. Every lane does exactly the arithmetic of a single voxel.
#pragma once

#include <concepts>

#include "../../base/simd.hpp"
#include "../../pipeline/pipeline.hpp"

namespace suture::detail {

inline constexpr int strip_width = 32;
// Loops of several steps take this many lanes through all steps before the next lanes: as many as a register holds
// floats. clang vectorizes no loop that short, so it takes the whole strip.
#if defined(__clang__)
inline constexpr int lanes_at_once = strip_width;
#elif defined(__AVX512F__)
inline constexpr int lanes_at_once = 16;
#else
inline constexpr int lanes_at_once = 8;
#endif
// Alignment of arrays that are read by whole registers: no register crosses a cache line.
inline constexpr std::size_t lane_alignment = 64;

// Copies a strip in whole registers.
template <class T>
SUTURE_INLINE void copy_strip(void* to, const T* from) {
  simd::copy<strip_width * sizeof(T)>(to, from);
}

// The address of a voxel in a tensor of elements T.
template <class T, class Tensor>
SUTURE_INLINE T* element_at(const Tensor& t, const voxel_index& i) {
  return static_cast<T*>(t.data) + i.channel * t.channel_stride + i.z * t.stride[0] + i.y * t.stride[1] +
         i.x * t.stride[2];
}

// Returns the value of a stored element; a label is returned as it is.
template <class V, class T>
SUTURE_INLINE V loaded(T stored) {
  if constexpr (std::is_same_v<T, V>)
    return stored;
  else
    return storage<T>::load(stored);
}

// Loads the values or labels of `count` voxels that lie `step` elements apart. Lanes from `count` on repeat the last.
template <class T, class V>
SUTURE_INLINE void load_strip(const T* from, std::int64_t step, int count, V (&v)[strip_width]) {
  if (step == 1 && count >= strip_width) {
    if constexpr (std::is_same_v<T, V>)
      copy_strip(v, from);
    else
      for (int l = 0; l < strip_width; ++l) v[l] = loaded<V>(from[l]);
  } else {
    for (int l = 0; l < strip_width; ++l) v[l] = loaded<V>(from[(l < count ? l : count - 1) * step]);
  }
}

// Value functors that can process a strip along x at once, such as noise, whose random blocks span four voxels of x.
template <class F>
concept applies_to_rows = requires(const F& f, float (&values)[strip_width], const voxel& first) {
  f.apply_row(values, first);
};
// Functors that can process a strip along any axis at once. needs_strips_along_x() tells whether they still need strips
// along x with the parameters of this sample.
template <class F>
concept applies_to_lines = applies_to_rows<F> &&
    requires(const F& f, float (&values)[strip_width], const voxel& first) {
  f.apply_line(values, first, 0, std::uint64_t{1});
  { f.needs_strips_along_x() } -> std::same_as<bool>;
};
// Color functors that read parameters of the sample, such as its stains, once for all lanes.
template <class F>
concept applies_to_lanes = requires(const F& f, float (&pixels)[3][strip_width], std::int32_t sample_index) {
  f.apply_lanes(pixels, sample_index);
};
template <class F, class R>
concept converts_rows = requires(const F& f, const float (&values)[strip_width], R (&out)[strip_width]) {
  f.convert_row(values, out);
};

// Positions of lanes that run along x.
struct along_x {
  voxel first;
  SUTURE_INLINE voxel operator()(int l) const {
    voxel at = first;
    at.x += l;
    at.element += static_cast<std::uint64_t>(l);
    return at;
  }
  SUTURE_INLINE along_x in_channel(std::int32_t channel) const { return {suture::in_channel(first, channel)}; }
};

// Applies one functor of one channel to the lanes; place(l) is the position of lane l.
template <class F, class T, class Place>
SUTURE_INLINE void apply_to_lanes(const F& f, T (&v)[strip_width], const Place& place) {
  if constexpr (applies_to_rows<F> && std::is_same_v<Place, along_x>)
    f.apply_row(v, place.first);
  else if constexpr (applies_to_lines<F> && requires { place.element_step; })
    f.apply_line(v, place.first, place.axis, place.element_step);
  else if constexpr (applies_to_rows<F> && !needs_voxel<F>)
    f.apply_row(v, voxel{});
  else
    for (int l = 0; l < strip_width; ++l) v[l] = call(f, v[l], place(l));
}
template <class F, class T, class R, class Place>
SUTURE_INLINE void convert_lanes(const F& f, const T (&v)[strip_width], R (&out)[strip_width], const Place& place) {
  if constexpr (converts_rows<F, R>)
    f.convert_row(v, out);
  else
    for (int l = 0; l < strip_width; ++l) out[l] = call(f, v[l], place(l));
}

// Type of a functor in a loop over lanes: a copy, so that the compiler knows that stores to the lanes do not change it.
// A large functor stays a reference.
template <class F>
using in_loop = std::conditional_t<(sizeof(F) > 64), const F&, const F>;

// Applies functor I of a pack and those after it to a strip; `done` receives the result, which may have another type.
template <std::size_t I = 0, class Pack, class T, class Place, class Done>
SUTURE_INLINE void apply_lanes(const Pack& functors, T (&v)[strip_width], const Place& place, const Done& done) {
  if constexpr (I == Pack::size) {
    done(v);
  } else {
    using F = std::remove_cvref_t<decltype(bare(get<I>(functors)))>;
    in_loop<F> f = bare(get<I>(functors));
    using R = decltype(call(f, v[0], place(0)));
    if constexpr (std::is_same_v<R, T>) {
      if (is_on(get<I>(functors))) apply_to_lanes(f, v, place);
      apply_lanes<I + 1>(functors, v, place, done);
    } else {
      alignas(lane_alignment) R r[strip_width];
      convert_lanes(f, v, r, place);
      apply_lanes<I + 1>(functors, r, place, done);
    }
  }
}

// Applies functor I of a pack and those after it to a strip of pixels; `place` holds the positions in channel 0.
template <std::size_t I = 0, class Pack, class T, class Place, class Done>
SUTURE_INLINE void apply_pixel_lanes(const Pack& functors, T (&v)[3][strip_width], const Place& place,
                                     const Done& done) {
  if constexpr (I == Pack::size) {
    done(v);
  } else {
    using F = std::remove_cvref_t<decltype(bare(get<I>(functors)))>;
    in_loop<F> f = bare(get<I>(functors));
    using R = typename channel_of<decltype(call(f, rgb{}, place(0)))>::type;
    if constexpr (applies_to_lanes<F>) {
      if (is_on(get<I>(functors))) f.apply_lanes(v, place(0).sample_index);
      apply_pixel_lanes<I + 1>(functors, v, place, done);
    } else if constexpr (applies<F, rgb>) {
      if (is_on(get<I>(functors)))
        for (int l = 0; l < strip_width; ++l) {
          const rgb result = call(f, rgb{{v[0][l], v[1][l], v[2][l]}}, place(l));
          for (int channel = 0; channel < 3; ++channel) v[channel][l] = result.c[channel];
        }
      apply_pixel_lanes<I + 1>(functors, v, place, done);
    } else if constexpr (std::is_same_v<R, T>) {
      if (is_on(get<I>(functors)))
        for (int channel = 0; channel < 3; ++channel) apply_to_lanes(f, v[channel], place.in_channel(channel));
      apply_pixel_lanes<I + 1>(functors, v, place, done);
    } else {
      R r[3][strip_width];
      for (int channel = 0; channel < 3; ++channel) convert_lanes(f, v[channel], r[channel], place.in_channel(channel));
      apply_pixel_lanes<I + 1>(functors, r, place, done);
    }
  }
}

}  // namespace suture::detail
