// SPDX-License-Identifier: Apache-2.0
// Pixels whose colours are worked on where nothing is moved: a thread makes some neighbours of a row, read and written
// in one piece where they lie so, and what a functor reads of the sample is read once for them.
#pragma once

#include "../core/evaluator.hpp"
#include "lanes.hpp"
#include "level_table.hpp"

namespace suture::detail {

// Functors that see each channel at its voxel, e.g. noise, are too much work to be there several times over.
template <class Pack>
inline constexpr bool any_channel_needs_voxel = false;
template <class... Fs>
inline constexpr bool any_channel_needs_voxel<pack<Fs...>> =
    (applies_with_voxel<typename unswitched<Fs>::type, float> || ...);

template <class Evaluator>
inline constexpr bool in_colour_runs =
    !Evaluator::pipeline_type::has_geometry && Evaluator::pipeline_type::is_colour &&
    !Evaluator::converts_or_has_levels && !any_channel_needs_voxel<typename Evaluator::pipeline_type::outputs>;
template <class Evaluator>
inline constexpr std::int32_t colour_run = in_colour_runs<Evaluator> ? 4 : 1;

// As many elements as a run has.
template <class T>
struct run_of {
  static constexpr int size = 4;
  alignas(size * sizeof(T)) T at[size];
};

// Whether the runs of all channels and rows lie in one piece each.
template <class T, class Tensor>
__device__ __forceinline__ bool in_whole_runs(const Tensor& t) {
  using run = run_of<T>;
  const std::int64_t strides = t.stride[0] | t.stride[1] | t.channel_stride;
  return t.stride[2] == 1 && strides % run::size == 0 && reinterpret_cast<std::uintptr_t>(t.data) % sizeof(run) == 0;
}

// The runs of one bound pair.
template <std::size_t B, class Evaluator>
struct colour_runs {
  using pipeline = typename Evaluator::pipeline_type;
  using record = typename Evaluator::record_type;
  using pair = typename Evaluator::template pair<B>;
  using In = typename Evaluator::template binding_type<B>::input;
  using Out = typename pair::Out;
  static constexpr int size = run_of<In>::size;
  static constexpr bool looks_up = first_begins_with_levels<pipeline, In>();

  const record& r;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  std::int32_t number;
  bool reads_whole = in_whole_runs<In>(in), writes_whole = in_whole_runs<Out>(out);

  // That at (z, y, x), by what makes finished pixels of the elements read.
  template <class Finish>
  __device__ __forceinline__ void make(std::int32_t z, std::int32_t y, std::int32_t x, const Finish& finish) const {
    const std::int32_t count = r.sample.extents[2] - x;
    const In* from =
        in_global_memory(static_cast<const In*>(in.data)) + z * in.stride[0] + y * in.stride[1] + x * in.stride[2];
    run_of<In> read[3] = {};
    SUTURE_UNROLL
    for (int c = 0; c < 3; ++c, from += in.channel_stride) {
      if (reads_whole && count >= size) {
        read[c] = *reinterpret_cast<const run_of<In>*>(from);
      } else {
        SUTURE_UNROLL
        for (int i = 0; i < size; ++i)
          if (i < count) read[c].at[i] = from[i * in.stride[2]];
      }
    }
    run_of<Out> made[3];
    finish(read, [&](const auto& v) {
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < size; ++i) made[c].at[i] = stored<Out>(v[c][i]);
    });
    Out* to = in_global_memory(static_cast<Out*>(out.data)) + z * out.stride[0] + y * out.stride[1] + x * out.stride[2];
    SUTURE_UNROLL
    for (int c = 0; c < 3; ++c, to += out.channel_stride) {
      if (writes_whole && count >= size) {
        *reinterpret_cast<run_of<Out>*>(to) = made[c];
      } else {
        SUTURE_UNROLL
        for (int i = 0; i < size; ++i)
          if (i < count) to[i * out.stride[2]] = made[c].at[i];
      }
    }
  }
};

// Functors I.. of a pack on the pixels of a run, one after the other; `done` receives the results.
template <std::size_t I, int N, class Pack, class T, class Place, class Done>
__device__ __forceinline__ void apply_to_run(const Pack& functors, T (&v)[3][N], const Place& place, const Done& done) {
  if constexpr (I == Pack::size) {
    done(v);
  } else {
    using F = std::remove_cvref_t<decltype(bare(get<I>(functors)))>;
    std::conditional_t<(sizeof(F) > 64), const F&, const F> f = bare(get<I>(functors));  // read once
    using R = typename channel_of<decltype(call(f, pixel<T>{}, place(0)))>::type;
    const auto each = [&](R(&to)[3][N]) {
      SUTURE_UNROLL
      for (int i = 0; i < N; ++i) {
        const pixel<R> result = call(f, pixel<T>{{v[0][i], v[1][i], v[2][i]}}, place(i));
        for (int c = 0; c < 3; ++c) to[c][i] = result.c[c];
      }
    };
    if constexpr (std::is_same_v<R, T>) {
      if (is_on(get<I>(functors))) {
        if constexpr (applies_to_lanes<F>)
          f.apply_lanes(v, place(0).item);
        else
          each(v);
      }
      apply_to_run<I + 1>(functors, v, place, done);
    } else {
      R result[3][N];
      each(result);
      apply_to_run<I + 1>(functors, result, place, done);
    }
  }
}

// What all threads of a block make of one pair: each the runs at x of `rows` rows, `step` apart from y on, of planes
// z0 .. z1 - 1.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void make_colour_runs(const typename Evaluator::record_type& r, std::int32_t number,
                                                 std::int32_t rows, std::int32_t step, std::int32_t z0, std::int32_t z1,
                                                 std::int32_t y, std::int32_t x) {
  using runs = colour_runs<B, Evaluator>;
  using In = typename runs::In;
  const runs all{.r = r, .number = number};
  const auto each = [&](const auto& finish) {
#pragma unroll 1
    for (std::int32_t row = 0; row < rows; ++row, y += step)
      if (x < r.sample.extents[2] && y < r.sample.extents[1])
#pragma unroll 1
        for (std::int32_t z = z0; z < z1; ++z)
          all.make(z, y, x, [&](const run_of<In>(&read)[3], const auto& take) { finish(read, take, z); });
  };
  const auto place = [&](int i, std::int32_t z) { return voxel_at(r.sample.extents, number, 0, z, y, x + i); };
  if constexpr (runs::looks_up) {
    const auto tile = get<0>(r.sample.outputs).tile_of(number);
    __shared__ float table[256];
    table[threadIdx.x] = tile.level(static_cast<float>(threadIdx.x));
    __syncthreads();
    each([&](const run_of<In>(&read)[3], const auto& take, std::int32_t z) {
      float v[3][runs::size];
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c) SUTURE_UNROLL
      for (int i = 0; i < runs::size; ++i) v[c][i] = table[read[c].at[i]];
      tile.finish(v);
      apply_to_run<1>(
          r.sample.outputs, v, [&](int i) { return place(i, z); }, take);
    });
  } else {
    each([&](const run_of<In>(&read)[3], const auto& take, std::int32_t z) {
      float v[3][runs::size];
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < runs::size; ++i) v[c][i] = storage<In>::load(read[c].at[i]);
      apply_to_run<0>(
          r.sample.outputs, v, [&](int i) { return place(i, z); }, take);
    });
  }
}

// Label maps beside them, which nothing changes.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void copy_label_runs(const typename Evaluator::record_type& r, std::int32_t rows,
                                                std::int32_t step, std::int32_t z0, std::int32_t z1, std::int32_t y,
                                                std::int32_t x) {
  using L = typename Evaluator::template binding_type<B>::input;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const std::int32_t end = min(x + run_of<L>::size, r.sample.extents[2]);
  for (std::int32_t row = 0; row < rows; ++row, y += step)
    if (y < r.sample.extents[1])
      for (std::int32_t z = z0; z < z1; ++z)
        for (std::int32_t channel = 0; channel < in.channels; ++channel)
          for (std::int32_t i = x; i < end; ++i)
            static_cast<L*>(
                out.data)[channel * out.channel_stride + z * out.stride[0] + y * out.stride[1] + i * out.stride[2]] =
                read<L>(in, channel, z, y, i);
}

template <bool WithLabels, class Evaluator>
__device__ __forceinline__ void make_colour_rows(const typename Evaluator::record_type& r, std::int32_t number,
                                                 std::int32_t rows, std::int32_t step, std::int32_t z0, std::int32_t z1,
                                                 std::int32_t y, std::int32_t x) {
  const auto one = [&]<std::size_t B>() {
    if constexpr (!Evaluator::template binding_type<B>::is_label)
      make_colour_runs<B, Evaluator>(r, number, rows, step, z0, z1, y, x);
    else if constexpr (WithLabels)
      copy_label_runs<B, Evaluator>(r, rows, step, z0, z1, y, x);
  };
  [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

}  // namespace suture::detail
