// SPDX-License-Identifier: Apache-2.0
// Finds, for a Macenko fit on a CUDA device, the keys at a percentile of an 8-bit tile without counting all of them, as
// on the CPU (percentile_window.hpp). A sample of the pixels predicts between which keys those lie. One pass over the
// tile, four pixels at a time, leaves out all pixels whose keys lie elsewhere, and the rounds count the few others. If
// a rank does not lie among them, the rounds count all pixels.
#pragma once

#include "macenko_count.cuh"

namespace suture::detail {

// ---- Four pixels at a time ----

// Neighbors of a row: byte k of a word is a channel of pixel k.
struct four_pixels {
  std::uint32_t channel[3];

  __device__ __forceinline__ std::uint32_t level(int c, int k) const { return channel[c] >> 8 * k & 255u; }
  // Red, green and blue in the lower bytes; the highest byte is ignored.
  __device__ __forceinline__ std::uint32_t color(int k) const {
    const auto byte = static_cast<unsigned>(k);
    return __byte_perm(__byte_perm(channel[0], channel[1], byte | (byte + 4) << 4), channel[2],
                       0x10u | (byte + 4) << 8);
  }
};

// Memory layout by which four pixels are read: by whole words where every row consists of them.
enum class four_layout { interleaved, planar, other };

__device__ __forceinline__ four_layout layout_of_vec4(const fit_record& r) {
  const auto start = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(r.data));
  if (((start | r.stride[0] | r.stride[1] | r.extents[2]) & 3) != 0) return four_layout::other;
  if (r.stride[2] == 3 && r.channel_stride == 1) return four_layout::interleaved;
  return r.stride[2] == 1 && (r.channel_stride & 3) == 0 ? four_layout::planar : four_layout::other;
}

// The n <= 4 pixels from `at` on; with a layout of words, all four.
template <four_layout Layout>
__device__ __forceinline__ four_pixels load_four(const std::uint8_t* at, std::int64_t channel_stride,
                                                 std::int64_t stride, int n) {
  const auto word = [&](std::int64_t offset) { return __ldg(reinterpret_cast<const std::uint32_t*>(at + offset)); };
  if constexpr (Layout == four_layout::interleaved) {
    const std::uint32_t w[3] = {word(0), word(4), word(8)};
    return {{__byte_perm(__byte_perm(w[0], w[1], 0x0630), w[2], 0x5210),
             __byte_perm(__byte_perm(w[0], w[1], 0x0741), w[2], 0x6210),
             __byte_perm(__byte_perm(w[0], w[1], 0x0052), w[2], 0x7410)}};
  } else if constexpr (Layout == four_layout::planar) {
    return {{word(0), word(channel_stride), word(2 * channel_stride)}};
  } else {
    four_pixels p{};
    for (int k = 0; k < 4; ++k)
      if (k < n)
        for (int c = 0; c < 3; ++c) p.channel[c] |= std::uint32_t{__ldg(at + c * channel_stride + k * stride)} << 8 * k;
    return p;
  }
}

template <four_layout Layout, class Map, class Selector, class Visit>
__device__ __forceinline__ void visit_vec4_of(const Selector& select, const fit_record& r, const Visit& visit) {
  const std::int32_t nx = r.extents[2];
  const std::int64_t stride = r.stride[2], channel_stride = r.channel_stride;
  const int width = nx >= 4096 ? stain_threads : 32;
  const int lane = static_cast<int>(threadIdx.x) % width, line = static_cast<int>(threadIdx.x) / width;
  const auto ny = static_cast<unsigned>(r.extents[1]), rows = static_cast<unsigned>(r.extents[0]) * ny;
  for (auto row = static_cast<unsigned>(line); row < rows; row += static_cast<unsigned>(stain_threads / width)) {
    const unsigned z = row / ny, y = row % ny;
    const auto* at = static_cast<const std::uint8_t*>(r.data) + z * r.stride[0] + y * r.stride[1] + 4 * lane * stride;
    for (std::int32_t x = 4 * lane; x < nx; x += 4 * width) {
      const int n = Layout == four_layout::other ? min(nx - x, 4) : 4;
      const four_pixels p = load_four<Layout>(at, channel_stride, stride, n);
      unsigned selected = 15u >> (4 - n), undeclared = 0;
      if constexpr (!std::is_same_v<Selector, everything::selector>) {
        const Map* map = static_cast<const Map*>(r.map) + z * r.map_stride[0] + y * r.map_stride[1];
        for (int k = 0; k < n; ++k) {
          const verdict v = select(std::uint8_t{0}, r.map == nullptr ? Map{0} : map[(x + k) * r.map_stride[2]]);
          if (v != verdict::selected) selected &= ~(1u << k);
          undeclared += v == verdict::undeclared ? 1u : 0u;
        }
      }
      visit(p, selected, undeclared);
      at += 4 * width * stride;
    }
  }
}

// Calls visit(pixels, mask of the selected, count of the undeclared) for all pixels of a tile. A warp processes a row;
// rows of 4096 pixels or more are processed by the whole block.
template <class Map, class Selector, class Visit>
__device__ __forceinline__ void visit_vec4(const Selector& select, const fit_record& r, const Visit& visit) {
  switch (layout_of_vec4(r)) {
    case four_layout::interleaved:
      return visit_vec4_of<four_layout::interleaved, Map>(select, r, visit);
    case four_layout::planar:
      return visit_vec4_of<four_layout::planar, Map>(select, r, visit);
    default:
      return visit_vec4_of<four_layout::other, Map>(select, r, visit);
  }
}

// The record of an image with its pixels in rows as long as memory allows.
__device__ __forceinline__ fit_record in_long_rows(fit_record r) {
  for (int k = 1; k >= 0; --k) {
    const bool together = (k == 1 || r.extents[1] == 1) && r.stride[k] == r.extents[2] * r.stride[2] &&
                          (r.map == nullptr || r.map_stride[k] == r.extents[2] * r.map_stride[2]);
    if (r.extents[k] != 1 && !together) continue;
    r.extents[2] *= r.extents[k];
    r.extents[k] = 1;
    r.stride[k] = 0;
  }
  return r;
}

// ---- The state of a tile ----

enum class stain_pixels { all, sampled, sifted };

struct sifting {
  bool on;
  stain_pixels pixels;  // which pixels the rounds count
  fit_record from;      // the memory of these pixels
  fit_record rows;      // that of all pixels, in rows for visit_vec4
  std::uint32_t* list;  // pixels that pass the sieve, a word each
  std::uint32_t room;   // pixels that fit the list, which has room for four more
  std::uint32_t kept;
  std::uint32_t limit[2];  // coarse bins: from the first to the second (angles), or below both, pixels are left out
  std::uint32_t likely[2], sampled;  // pixels of the sample beyond either limit, and all of them
  std::uint64_t rank[4];             // among all pixels
  std::int32_t passing[256];         // densities in fixed point, -1 where they do not pass the threshold
  std::uint32_t sieve[3][256];

  __device__ __forceinline__ void start(const macenko_rules& rules, const fit_record& image, std::uint32_t* to,
                                        std::uint32_t most) {
    rows = in_long_rows(image);
    // The fast path is on if all three channels of stained pixels pass the threshold, and sums of products of up to
    // 2^17 pixels a thread stay below 2^63.
    on = rules.fit.stained <= stained_rule::all_above && rules.fit.least_density >= 0 && rules.fits_rounded() &&
         std::int64_t{rows.extents[0]} * rows.extents[1] * (rows.extents[2] / 128 + 1) <= 1 << 19;
    list = to;
    room = most;
    choose(stain_pixels::all, image);
  }
  __device__ __forceinline__ void choose(stain_pixels which, const fit_record& image) {
    pixels = which;
    from = image;
    if (which == stain_pixels::sampled) {  // steps that share no factor with the blocks of compressed images
      const int step[3] = {1, 7, 5};
      for (int k = 0; k < 3; ++k) {
        from.extents[k] = (image.extents[k] + step[k] - 1) / step[k];
        from.stride[k] *= step[k];
        from.map_stride[k] *= step[k];
      }
    } else if (which == stain_pixels::sifted) {
      from = {.data = list,
              .map = nullptr,
              .stride = {0, 0, 4},
              .channel_stride = 1,
              .extents = {1, 1, static_cast<std::int32_t>(kept)}};
    }
  }
  // Chooses the pixels of the round after `ended`.
  __device__ __forceinline__ void choose_for_next(const macenko_solver& solver, std::int32_t ended,
                                                  const fit_record& image) {
    if (!on) return;
    const bool fine = solver.round == fine_angles || solver.round == fine_concentrations;
    if (fine && pixels == stain_pixels::sifted) return;
    const bool sifts =
        solver.round == coarse_angles || (solver.round == coarse_concentrations && solver.unmixing.penalized == 0);
    choose(sifts && solver.round != ended ? stain_pixels::sampled : stain_pixels::all, image);
  }
  // Tests by the upper digits of a coarse round whether the keys are in the range from which the list has all pixels.
  __device__ __forceinline__ bool accepts(macenko_solver& solver) const {
    if (pixels != stain_pixels::sifted || solver.round == fine_angles || solver.round == fine_concentrations)
      return true;
    const bool angles = solver.round == coarse_angles;
    bool inside = true;
    for (int r = 0; r < 4; ++r)
      inside = inside && (angles && r < 2 ? solver.prefix[r] <= limit[0] : solver.prefix[r] >= limit[r / 2]);
    if (inside) return true;
    for (int r = 0; r < 4; ++r) {
      solver.prefix[r] = 0;
      solver.rank[r] = rank[r];
    }
    return false;
  }
};

// Replaces `sifting` for tiles that are not 8-bit.
struct no_sifting {
  __device__ __forceinline__ void start(const macenko_rules&, const fit_record&, const std::uint32_t*, std::uint32_t) {}
  __device__ __forceinline__ void choose_for_next(const macenko_solver&, std::int32_t, const fit_record&) {}
  __device__ __forceinline__ bool accepts(const macenko_solver&) const { return true; }
};

// ---- The round of sums ----

template <class Map, class Selector>
__device__ __forceinline__ void sum_vec4(const macenko_rules& rules, const Selector& select, macenko_block& b,
                                         sifting& s) {
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += stain_threads)
    s.passing[i] = rules.passes_threshold(b.density[i]) ? b.fixed[i] : -1;
  __syncthreads();
  partial_totals p;
  visit_vec4<Map>(select, s.rows, [&](const four_pixels& four, unsigned selected, unsigned undeclared) {
    p.pixels += static_cast<unsigned>(__popc(selected));
    p.undeclared += undeclared;
    std::uint32_t sum[3] = {};
    for (int k = 0; k < 4; ++k) {
      std::int32_t fixed[3];
      for (int c = 0; c < 3; ++c) fixed[c] = s.passing[four.level(c, k)];
      if ((fixed[0] | fixed[1] | fixed[2]) < 0 || (selected >> k & 1) == 0) continue;
      ++p.stained;
      const std::int64_t red = fixed[0], green = fixed[1], blue = fixed[2];
      for (int c = 0; c < 3; ++c) sum[c] += static_cast<std::uint32_t>(fixed[c]);
      p.product[0] += red * red;
      p.product[1] += red * green;
      p.product[2] += red * blue;
      p.product[3] += green * green;
      p.product[4] += green * blue;
      p.product[5] += blue * blue;
    }
    for (int c = 0; c < 3; ++c) p.sum[c] += sum[c];
  });
  __syncwarp();
  p.add_to(b.totals);
}

// ---- The sieve ----

// A sieve holds two 16-bit numbers for every level of every channel: the part of that density in the distance to either
// plane. sieve_front units reach from the lowest corner of all densities to the plane. The numbers of a pixel's three
// channels add up, and the highest bits of both sums reject the pixel. Rounding down only keeps more pixels.
inline constexpr std::uint32_t sieve_front = 16000;

__device__ __forceinline__ void make_sieve(const macenko_rules& rules, const macenko_block& b, sifting& s) {
  const bool angles = b.solver.round == coarse_angles;
  const bool all = !angles && rules.fit.concentrations_of_all;
  const stain_planes planes(rules, b.solver, angles ? (s.limit[0] << 11) + 2047 : s.limit[0] << 11, s.limit[1] << 11,
                            0);
  const float least = all ? b.density[255] : rules.fit.least_density, most = b.density[0];
  float corner[2][3], scale[2];
  for (int k = 0; k < 2; ++k) {
    float distance = planes.least[k];
    for (int c = 0; c < 3; ++c) {
      corner[k][c] = fma(planes.side[k][c], planes.side[k][c] > 0 ? least : most, 0.0f);
      distance -= corner[k][c];
    }
    scale[k] = math::detail::divide(static_cast<float>(sieve_front), distance > 1e-3f ? distance : 1e-3f);
  }
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += stain_threads) {
    const float density = b.density[i];
    const bool out = !all && !rules.passes_threshold(density);
    for (int c = 0; c < 3; ++c) {
      std::uint32_t entry = c == 0 ? 0x80008000u - 0x10001u * (sieve_front + 1) : 0;
      for (int k = 0; k < 2; ++k) {
        const float x = fma(fma(planes.side[k][c], density, -corner[k][c]), scale[k], 0.0f);
        const float most_x = sieve_front + 1;  // sets the highest bit by itself
        const float bounded = out || x > most_x ? most_x : x > 0 ? x : 0.0f;
        entry += static_cast<std::uint32_t>(bounded) << 16 * k;
      }
      s.sieve[c][i] = entry;
    }
  }
}

template <class Map, class Selector>
__device__ __forceinline__ void fill_list(const Selector& select, sifting& s) {
  std::uint32_t* const list = s.list;
  const std::uint32_t room = s.room;
  visit_vec4<Map>(select, s.rows, [&](const four_pixels& four, unsigned selected, unsigned) {
    // The highest bit rejects a pixel.
    const auto out_of = [&](int k) {
      const std::uint32_t sum =
          s.sieve[0][four.level(0, k)] + s.sieve[1][four.level(1, k)] + s.sieve[2][four.level(2, k)];
      return (sum & sum << 16) | ~selected << (31 - k);
    };
    const std::uint32_t out0 = out_of(0), out1 = out_of(1), out2 = out_of(2), out3 = out_of(3);
    if (static_cast<std::int32_t>(out0 & out1 & out2 & out3) < 0) return;
    const std::uint32_t one = 1 - (out0 >> 31), two = one + 1 - (out1 >> 31), three = two + 1 - (out2 >> 31),
                        kept = three + 1 - (out3 >> 31);
    std::uint32_t* const to = list + min(atomicAdd(&s.kept, kept), room);
    if (one > 0) to[0] = four.color(0);
    if (two > one) to[one] = four.color(1);
    if (three > two) to[two] = four.color(2);
    if (kept > three) to[three] = four.color(3);
  });
}

// Finds, from the counts of a sample, the coarse bins beyond which the percentiles lie, and the number of sampled
// pixels there. Two warps do the work.
__device__ __forceinline__ void find_limits(const macenko_rules& rules, const macenko_block& b, sifting& s) {
  const int k = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (k >= 2) return;
  const bool angles = b.solver.round == coarse_angles, first = angles && k == 0;
  const std::uint32_t* const bins = b.bin + (angles ? 0 : k * coarse_bins);
  std::uint32_t sampled = 0;
  for (int i = lane; i < coarse_bins; i += 32) sampled += bins[i];
  sampled = __reduce_add_sync(0xffffffffu, sampled);
  std::uint32_t limit = 0, likely = sampled;
  if (sampled > 0) {
    const likely_ranks at(sampled, b.solver.rank[2 * k], b.solver.searched(rules));
    std::uint64_t rank = first ? at.last : at.first;
    const auto before = static_cast<std::uint32_t>(rank);
    limit = locate_rank(bins, coarse_bins, rank);
    const std::uint32_t below = before - static_cast<std::uint32_t>(rank);
    likely = first ? below + bins[limit] : sampled - below;
  }
  if (lane == 0) {
    s.limit[k] = limit;
    s.likely[k] = likely;
    if (k == 0) s.sampled = sampled;  // for either stain
  }
}

// Ends the round of a sample: lists the pixels among which a percentile may lie, if they are few.
template <class Map, class Selector>
__device__ __forceinline__ void sift(const macenko_rules& rules, const Selector& select, const fit_record& image,
                                     macenko_block& b, sifting& s) {
  find_limits(rules, b, s);
  if (threadIdx.x == 0) s.kept = 0;
  __syncthreads();
  const bool angles = b.solver.round == coarse_angles;
  bool sifts =
      8 * (static_cast<std::uint64_t>(s.likely[0]) + s.likely[1]) < s.sampled && (!angles || s.limit[0] < s.limit[1]);
  if (sifts) {
    make_sieve(rules, b, s);
    __syncthreads();
    fill_list<Map>(select, s);
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    macenko_solver& solver = b.solver;
    // The keys of rejected pixels lie above the first limit of angles, and below the other limits.
    const std::uint64_t out = solver.searched(rules) - s.kept;
    sifts = sifts && s.kept <= s.room && solver.rank[2] >= out &&
            (angles ? solver.rank[1] < s.kept : solver.rank[0] >= out);
    if (sifts)
      for (int r = 0; r < 4; ++r) {
        s.rank[r] = solver.rank[r];
        solver.rank[r] -= angles && r < 2 ? 0 : out;
      }
    s.choose(sifts ? stain_pixels::sifted : stain_pixels::all, image);
  }
  __syncthreads();
}

}  // namespace suture::detail
