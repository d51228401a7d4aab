// SPDX-License-Identifier: Apache-2.0
// Positions of the lanes of a strip that runs along any axis of the output, for functors that use them.
#pragma once

#include "../common/lanes.hpp"
#include "../common/loop_order.hpp"

namespace suture::detail {

// Tells whether a functor of a pack processes strips along x at once and uses their positions, as noise does, whose
// random blocks span four voxels along x. Such a strip takes a fraction of the time of as many single voxels.
template <class Pack>
inline constexpr bool any_needs_strips_along_x = false;
template <class... Fs>
inline constexpr bool any_needs_strips_along_x<pack<Fs...>> =
    ((needs_voxel<typename unswitched<Fs>::type> && applies_to_rows<typename unswitched<Fs>::type>) || ...);

template <class F>
bool still_needs_strips_along_x(const F& f) {
  if constexpr (applies_to_lines<F>)
    return f.needs_strips_along_x();
  else
    return true;
}

// Tests whether an operation after the geometry needs strips along x in a sample, see loops_of_strips. Operations of
// the fused part that are off need none; those of later stages count even if they are off.
template <class Pipeline>
bool lanes_stay_along_x(const sample_parameters<Pipeline>& sample) {
  using Outputs = typename Pipeline::output_functors;
  if constexpr (any_needs_strips_along_x<typename Pipeline::stage_functors>) {
    return true;
  } else if constexpr (any_needs_strips_along_x<Outputs>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return ((any_needs_strips_along_x<pack<element_t<I, Outputs>>> && is_on(get<I>(sample.output_functors)) &&
               still_needs_strips_along_x(bare(get<I>(sample.output_functors)))) ||
              ...);
    }
    (std::make_index_sequence<Outputs::size>{});
  } else {
    return false;
  }
}

// can_transpose_strips tells whether strips along z or y can be transposed for functors that need strips along x, see
// rows_along_x.hpp. transposes_strips tells whether those of a sample are; its rows then run along x.
template <class Pipeline>
inline constexpr bool can_transpose_strips =
    any_needs_strips_along_x<typename Pipeline::output_functors> &&
    !any_needs_strips_along_x<typename Pipeline::stage_functors> && !Pipeline::is_color;
template <class Pipeline>
bool transposes_strips(const sample_parameters<Pipeline>& sample) {
  if constexpr (can_transpose_strips<Pipeline>)
    return loop_axes[sample.loops][1] == 2 && lanes_stay_along_x(sample);
  else
    return false;
}

// Returns the voxel of the output at (plane, row, lane) of loops in another order than (z, y, x).
template <class Pipeline>
SUTURE_NOINLINE voxel voxel_of_other_loops(const sample_parameters<Pipeline>& sample, const voxel_index& i) {
  const int z = loop_along(sample.loops, 0), y = loop_along(sample.loops, 1), x = loop_along(sample.loops, 2);
  const auto at = [&](int loop) { return loop == 0 ? i.z : loop == 1 ? i.y : i.x; };
  return voxel_at({sample.extents[z], sample.extents[y], sample.extents[x]},
                  {i.sample, i.channel, at(z), at(y), at(x)});
}

// Returns the voxel of the output at (plane, row, lane) of the loops. For loops (z, y, x) compilers leave out what the
// functors do not use.
template <class Pipeline>
SUTURE_INLINE voxel voxel_of_loops(const sample_parameters<Pipeline>& sample, const voxel_index& i) {
  return sample.loops == 0 ? voxel_at(sample.extents, i) : voxel_of_other_loops(sample, i);
}

// Positions of lanes that run along any axis.
struct along_loops {
  voxel first;
  int axis;
  std::uint64_t element_step;

  template <class Pipeline>
  along_loops(const sample_parameters<Pipeline>& sample, const voxel_index& i)
      : first(voxel_of_loops(sample, i)), axis(loop_axes[sample.loops][2]) {
    const auto along = [&](int k) { return std::int64_t{sample.extents[loop_along(sample.loops, k)]}; };
    element_step = static_cast<std::uint64_t>(axis == 2 ? 1 : axis == 1 ? along(2) : along(1) * along(2));
  }

  SUTURE_INLINE voxel operator()(int l) const {
    voxel at = first;
    at.z += axis == 0 ? l : 0;
    at.y += axis == 1 ? l : 0;
    at.x += axis == 2 ? l : 0;
    at.element += static_cast<std::uint64_t>(l) * element_step;
    return at;
  }
  SUTURE_INLINE along_loops in_channel(std::int32_t channel) const {
    along_loops other = *this;
    other.first = suture::in_channel(first, channel);
    return other;
  }
};

// Calls use(place) with the positions of the lanes at (plane, row, first lane) of the loops, for the functors of a
// pack.
template <class Pack, class Pipeline, class Use>
SUTURE_INLINE void with_place(const sample_parameters<Pipeline>& sample, const voxel_index& i, const Use& use) {
  if constexpr (any_needs_voxel<Pack>) {
    if (loop_axes[sample.loops][2] != 2)
      use(along_loops(sample, i));
    else
      use(along_x{voxel_of_loops(sample, i)});
  } else {
    use(along_x{voxel_at(sample.extents, i)});
  }
}

}  // namespace suture::detail
