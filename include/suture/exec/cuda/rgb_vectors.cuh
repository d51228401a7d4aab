// SPDX-License-Identifier: Apache-2.0
// A path of the fused kernel for operations on colors. A thread computes several neighbors of a row and reads the
// parameters of the sample once for them. Tensors for which in_whole_runs holds are written in one access per channel,
// and without a geometry also read so.
#pragma once

#include "../common/lanes.hpp"
#include "../common/uint8_lookup.hpp"
#include "path.cuh"
#include "rgb_bilinear.cuh"

namespace suture::detail {

// Tests whether a functor is called for each channel with its voxel, as noise is. That is too much code to be inlined
// once for each of several pixels.
template <class Pack>
inline constexpr bool any_channel_needs_voxel = false;
template <class... Fs>
inline constexpr bool any_channel_needs_voxel<pack<Fs...>> =
    (applies_with_voxel<typename unswitched<Fs>::type, float> || ...);

// The neighbors of a row that a thread computes together (a run), in one channel.
template <class T>
struct run_of {
  static constexpr int size = pixels_at_once;
  alignas(size * sizeof(T)) T at[size];
};

// Tests whether every full run of a tensor can be accessed as a whole. The stride along x must be 1, the other strides
// multiples of a run and the pointer aligned to one; interleaved channels fail the test.
template <class T, class Tensor>
__device__ __forceinline__ bool in_whole_runs(const Tensor& t) {
  using run = run_of<T>;
  const std::int64_t strides = t.stride[0] | t.stride[1] | t.channel_stride;
  return t.stride[2] == 1 && strides % run::size == 0 && reinterpret_cast<std::uintptr_t>(t.data) % sizeof(run) == 0;
}

// Calls use(i, place) for each pixel i of the run at (z, y, x) with its position in the source.
template <class Pipeline, class Use>
__device__ __forceinline__ void along_run(const sample_parameters<Pipeline>& sample, std::int32_t z, std::int32_t y,
                                          std::int32_t x, const Use& use) {
  std::uint64_t position[3];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) position[k] = along(sample.map, k, z, y, x);
  SUTURE_NO_UNROLL
  for (int i = 0; i < run_of<float>::size; ++i) {
    coordinate place[3];
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      place[k] = split(position[k]);
      position[k] += sample.map.linear[k][2];
    }
    use(i, place);
  }
}

// Tests whether the first functor has constants of a sample (constants_of in uint8_lookup.hpp), which a block computes
// once for all of its pixels.
template <class Pipeline>
constexpr bool first_has_constants() {
  if constexpr (Pipeline::output_functors::size > 0)
    return begins_with_uint8_lookup<
        std::remove_cvref_t<decltype(get<0>(std::declval<const typename Pipeline::output_functors&>()))>>;
  else
    return false;
}

// Reads, interpolates and writes the runs of one bound pair.
template <std::size_t B, class Evaluator>
struct pixel_vectors {
  using pipeline = typename Evaluator::pipeline_type;
  using record = typename Evaluator::record_type;
  using pair = typename Evaluator::template pair<B>;
  using In = typename Evaluator::template binding_type<B>::input;
  using Out = typename pair::Out;
  static constexpr int size = run_of<In>::size;
  static constexpr bool looks_up = std::is_same_v<In, std::uint8_t> && first_has_constants<pipeline>();
  static constexpr bool shares_constants = pipeline::has_geometry && first_has_constants<pipeline>();
  static constexpr bool between_two = pipeline::has_geometry && !pipeline::prefiltered &&
                                      std::is_same_v<typename pipeline::interpolation_type, linear> &&
                                      !ends_at_rim<typename pipeline::border_type>;

  const record& r;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  std::int32_t sample_index;
  bool reads_whole = in_whole_runs<In>(in), writes_whole = in_whole_runs<Out>(out);
  std::int32_t pixel_step = between_two ? step_of_pixels() : 0;

  // Returns how many elements lie between neighbors of a source row, 3 or 1, if pixels_inside can interpolate: the
  // sample is planar, its steps are short enough, and channels or pixels are adjacent. Otherwise returns 0.
  __device__ __forceinline__ std::int32_t step_of_pixels() const {
    const fixed_map& map = r.sample.map;
    if (!r.sample.planar || !is_place_step(map.linear[1][2]) || !is_place_step(map.linear[2][2])) return 0;
    return in.stride[2] == 3 && in.channel_stride == 1 ? 3 : in.stride[2] == 1 ? 1 : 0;
  }

  // Reads the run at (z, y, x) without interpolation. Pixels beyond the row are zero.
  __device__ __forceinline__ void read(std::int32_t z, std::int32_t y, std::int32_t x, run_of<In> (&to)[3]) const {
    const std::int32_t count = r.sample.extents[2] - x;
    const In* from =
        in_global_memory(static_cast<const In*>(in.data)) + z * in.stride[0] + y * in.stride[1] + x * in.stride[2];
    SUTURE_UNROLL
    for (int c = 0; c < 3; ++c, from += in.channel_stride) {
      if (reads_whole && count >= size) {
        to[c] = *reinterpret_cast<const run_of<In>*>(from);
      } else {
        to[c] = {};
        SUTURE_UNROLL
        for (int i = 0; i < size; ++i)
          if (i < count) to[c].at[i] = from[i * in.stride[2]];
      }
    }
  }

  // Interpolates the source at the positions of the run at (z, y, x). `lanes` are the lanes of the warp that call this
  // together: they call pixels_inside only if the whole runs of all of them are inside the source.
  __device__ __forceinline__ void sample(unsigned lanes, std::int32_t z, std::int32_t y, std::int32_t x,
                                         const typename pipeline::border_type& border, float (&v)[3][size]) const {
    if constexpr (between_two)
      if (pixel_step != 0) {
        std::uint64_t place[2], to_next[2];
        bool all = true;
        SUTURE_UNROLL
        for (int k = 0; k < 2; ++k) {
          place[k] = along(r.sample.map, k + 1, 0, y, x);
          to_next[k] = r.sample.map.linear[k + 1][2];
          const std::int32_t pairs = in.extents[k + 1] - 1;
          all = all & begins_pair(place[k], pairs) & begins_pair(place[k] + (size - 1) * to_next[k], pairs);
        }
        if (__all_sync(lanes, all)) {
          pixels_inside<In>(in, pixel_step, place[0], place[1], to_next[0], to_next[1], v);
          return;
        }
      }
    along_run(r.sample, z, y, x, [&](int, const coordinate(&place)[3]) {
      if constexpr (between_two)
        append(v, pixel_between<typename pipeline::border_type, In>(in, place, r.sample.planar, border));
      else
        append(v, pair::sampled(r.sample, in, nullptr, place, sample_index, 0, border));
    });
  }

  // Writes the run at (z, y, x), without the pixels beyond the row.
  template <class T>
  __device__ __forceinline__ void write(std::int32_t z, std::int32_t y, std::int32_t x, const T (&v)[3][size]) const {
    const std::int32_t count = r.sample.extents[2] - x;
    Out* to = in_global_memory(static_cast<Out*>(out.data)) + z * out.stride[0] + y * out.stride[1] + x * out.stride[2];
    SUTURE_UNROLL
    for (int c = 0; c < 3; ++c, to += out.channel_stride) {
      run_of<Out> made;
      SUTURE_UNROLL
      for (int i = 0; i < size; ++i) made.at[i] = stored<Out>(v[c][i]);
      if (writes_whole && count >= size) {
        using piece =
            std::conditional_t<sizeof(made) == 4, std::uint32_t, std::conditional_t<sizeof(made) == 8, uint2, uint4>>;
        *reinterpret_cast<piece*>(to) = __builtin_bit_cast(piece, made);
      } else {
        SUTURE_UNROLL
        for (int i = 0; i < size; ++i)
          if (i < count) to[i * out.stride[2]] = made.at[i];
      }
    }
  }
};

// Applies functor I of a pack and the later ones to the pixels of a run; calls done(results) at the end. place(i)
// returns the voxel of pixel i.
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
          f.apply_lanes(v, place(0).sample_index);
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

// Computes one bound pair of images; all threads of a block call this. Each thread computes the runs that begin at x,
// in planes z0 .. z1 - 1 and in `rows` rows from y on, `step` apart.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void make_pixel_vectors(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                                   std::int32_t sample_index, std::int32_t rows, std::int32_t step,
                                                   std::int32_t z0, std::int32_t z1, std::int32_t y, std::int32_t x) {
  using runs = pixel_vectors<B, Evaluator>;
  using In = typename runs::In;
  const runs all{.r = r, .sample_index = sample_index};
  const auto each = [&](const auto& make) {
    SUTURE_NO_UNROLL
    for (std::int32_t row = 0; row < rows; ++row, y += step) {
      const bool here = x < r.sample.extents[2] && y < r.sample.extents[1];
      const unsigned lanes = runs::between_two ? __ballot_sync(0xffffffff, here) : 0;
      if (here) {
        SUTURE_NO_UNROLL
        for (std::int32_t z = z0; z < z1; ++z) make(z, lanes);
      }
    }
  };
  const auto finish = [&]<std::size_t First>(std::integral_constant<std::size_t, First>, std::int32_t z,
                                             float(&v)[3][runs::size]) {
    apply_to_run<First>(
        r.sample.output_functors, v,
        [&](int i) {
          return voxel_of_walk(r.sample.extents, r.sample.loops, {sample_index, 0, z, y, x + i});
        },
        [&](const auto& made) { all.write(z, y, x, made); });
  };
  using pipeline = typename Evaluator::pipeline_type;
  if constexpr (runs::shares_constants) {
    const auto& first = get<0>(r.sample.output_functors);
    using constants_type = decltype(first.constants_of(sample_index));
    __shared__ alignas(16) unsigned char bytes[(sizeof(constants_type) + 15) / 16 * 16];
    if (threadIdx.x == 0) {
      constexpr std::size_t last = sizeof(bytes) - 16;  // zeroed: reads of 16 bytes go beyond the last member
      *reinterpret_cast<uint4*>(bytes + last) = {};
      *reinterpret_cast<constants_type*>(bytes) = first.constants_of(sample_index);
    }
    __syncthreads();
    each([&](std::int32_t z, unsigned lanes) {
      float v[3][runs::size] = {};
      all.sample(lanes, z, y, x, evaluate.rule.border, v);
      constants_type constants = *reinterpret_cast<const constants_type*>(bytes);
      constants.owner = &first;  // the same value, but read from shared memory it would be unknown to the compiler
      constants.apply(v);
      finish(std::integral_constant<std::size_t, 1>{}, z, v);
    });
  } else if constexpr (pipeline::has_geometry) {
    each([&](std::int32_t z, unsigned lanes) {
      float v[3][runs::size] = {};
      all.sample(lanes, z, y, x, evaluate.rule.border, v);
      finish(std::integral_constant<std::size_t, 0>{}, z, v);
    });
  } else if constexpr (runs::looks_up) {
    const auto constants = get<0>(r.sample.output_functors).constants_of(sample_index);
    __shared__ float table[256];
    table[threadIdx.x] = constants.level(static_cast<float>(threadIdx.x));
    __syncthreads();
    each([&](std::int32_t z, unsigned) {
      run_of<In> read[3];
      all.read(z, y, x, read);
      float v[3][runs::size];
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c) SUTURE_UNROLL
      for (int i = 0; i < runs::size; ++i) v[c][i] = table[read[c].at[i]];
      constants.finish(v);
      finish(std::integral_constant<std::size_t, 1>{}, z, v);
    });
  } else {
    each([&](std::int32_t z, unsigned) {
      run_of<In> read[3];
      all.read(z, y, x, read);
      float v[3][runs::size];
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < runs::size; ++i) v[c][i] = storage<In>::load(read[c].at[i]);
      finish(std::integral_constant<std::size_t, 0>{}, z, v);
    });
  }
}

// Computes one bound pair of label maps, for the same voxels of a thread as make_pixel_vectors does.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void make_label_vectors(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                                   std::int32_t rows, std::int32_t step, std::int32_t z0,
                                                   std::int32_t z1, std::int32_t y, std::int32_t x) {
  using pair = typename Evaluator::template pair<B>;
  const std::int32_t count = min(run_of<float>::size, r.sample.extents[2] - x);
  for (std::int32_t row = 0; row < rows && y < r.sample.extents[1]; ++row, y += step)
    for (std::int32_t z = z0; z < z1; ++z) {
      const auto one = [&](int i, const coordinate(&place)[3]) {
        const auto* from = pair::start(r.in[B], 0);
        auto* to = static_cast<typename pair::Out*>(r.out[B].data) + z * r.out[B].stride[0] + y * r.out[B].stride[1] +
                   (x + i) * r.out[B].stride[2];
        for (std::int32_t channel = 0; channel < r.in[B].channels;
             ++channel, from += r.in[B].channel_stride, to += r.out[B].channel_stride)
          *to = pair::label(r.in[B], from, place, channel, z, y, x + i, evaluate.rule);
      };
      if constexpr (Evaluator::pipeline_type::has_geometry)
        along_run(r.sample, z, y, x, [&](int i, const coordinate(&place)[3]) {
          if (i < count) one(i, place);
        });
      else
        for (int i = 0; i < count; ++i) one(i, {});
    }
}

struct rgb_vectors {
  static constexpr std::string_view name = "rgb_vectors";

  template <class Evaluator>
  static constexpr bool possible = [] {
    using P = typename Evaluator::pipeline_type;
    return P::is_color && (!P::has_geometry || (P::source_functors::size == 0 && !P::has_deformation)) &&
           !Evaluator::converts && !any_channel_needs_voxel<typename P::output_functors>;
  }();
  template <class Evaluator>
  using shape =
      std::conditional_t<Evaluator::pipeline_type::has_geometry,
                         tile_shape<Evaluator, pixels_at_once, warp_x_of_turned_pixels, true, blocks_of_many_registers>,
                         tile_shape<Evaluator, pixels_at_once, warp_x, true>>;

  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static void make(const block_work<Evaluator>& work) {
    each_pair_on_device<Evaluator, WithLabels>([&]<std::size_t B>() {
      if constexpr (!Evaluator::template binding_type<B>::is_label)
        make_pixel_vectors<B>(work.evaluate, work.r, work.sample_index, work.tiles.rows, tile_y, work.at.z0, work.at.z1,
                              work.at.y, work.at.x);
      else
        make_label_vectors<B>(work.evaluate, work.r, work.tiles.rows, tile_y, work.at.z0, work.at.z1, work.at.y,
                              work.at.x);
    });
  }
};

}  // namespace suture::detail
