// SPDX-License-Identifier: Apache-2.0
// Tiles of which the device counts few pixels, because a sample says where the percentiles should lie: the bits are
// those of rounds that count all of them, however the tile lies in memory, and where the sample is misleading.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <suture/fit/macenko.cuh>
#include <suture/image/digest.hpp>
#include <vector>

#include "support/device_array.cuh"
#include "support/stained_tile.hpp"

namespace {

using namespace suture;

using bytes = std::vector<std::uint8_t>;

// Every round over all pixels, on the CPU.
template <class Selection = everything>
stain_basis by_rounds(const fit_macenko& how, const view<const std::uint8_t>& tile, const Selection& selection = {}) {
  macenko_search search(how);
  while (!search.done()) {
    search.add(cpu{}, tile, selection);
    search.advance();
  }
  return search.basis();
}

struct device_fit {
  stain_basis basis;
  double listed;  // the share of pixels that were written to a list
};

template <class Selection = everything>
device_fit on_device(const fit_macenko& how, const view<const std::uint8_t>& tile, const Selection& selection = {}) {
  const std::vector<view<const std::uint8_t>> tiles{tile};
  const std::size_t words = workspace_bytes(how, tiles) / 4;
  const std::uint32_t nothing = 0xfefefefeu;
  support::device_array<std::uint32_t> workspace(std::vector<std::uint32_t>(words, nothing));
  support::device_array<stain_basis> result{std::vector<stain_basis>(1)};
  fit(cuda{nullptr, std::as_writable_bytes(workspace.span())}, how, tiles, selection, result.span());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto left = workspace.values();
  const std::size_t records = 256 / 4;  // those of one tile lie in front of the list
  const auto written = std::count_if(left.begin() + records, left.end(), [&](std::uint32_t x) { return x != nothing; });
  return {result.values()[0], static_cast<double>(written) / static_cast<double>(tile.grid.voxels())};
}

// A tile that lies in memory with these strides, on the host and on the device.
struct placed_tile {
  grid g;
  bytes memory;
  support::device_array<std::uint8_t> device_memory;
  std::int64_t first, stride[3], channel_stride;

  placed_tile(const grid& extents, const bytes& interleaved, std::int64_t at, extent3 strides, std::int64_t between)
      : g(extents),
        memory(laid_out(extents, interleaved, at, strides, between)),
        device_memory(memory),
        first(at),
        stride{strides[0], strides[1], strides[2]},
        channel_stride(between) {}

  view<const std::uint8_t> host() const { return of(memory.data()); }
  view<const std::uint8_t> device() const { return of(device_memory.data()); }

private:
  static bytes laid_out(const grid& g, const bytes& from, std::int64_t at, const extent3& s, std::int64_t between) {
    const extent3& n = g.extents;
    bytes to(
        static_cast<std::size_t>(at + (n[0] - 1) * s[0] + (n[1] - 1) * s[1] + (n[2] - 1) * s[2] + 2 * between + 1));
    std::size_t i = 0;
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x)
          for (std::int64_t c = 0; c < 3; ++c)
            to[static_cast<std::size_t>(at + z * s[0] + y * s[1] + x * s[2] + c * between)] = from[i++];
    return to;
  }
  view<const std::uint8_t> of(const std::uint8_t* data) const {
    view<const std::uint8_t> v = channels_last(data + first, g, 3);
    for (int k = 0; k < 3; ++k) v.stride[k] = stride[k];
    v.channel_stride = channel_stride;
    return v;
  }
};

placed_tile contiguous_tile(const grid& g, const bytes& interleaved) {
  const extent3& n = g.extents;
  return {g, interleaved, 0, {3 * n[1] * n[2], 3 * n[2], 3}, 1};
}

TEST(percentile_window_device, lists_few_pixels_however_the_tile_lies) {
  const grid g{.extents = {1, 150, 176}}, odd{.extents = {1, 131, 167}}, slices{.extents = {2, 90, 128}};
  const bytes tile = support::stained_tile(g, 1), odd_tile = support::stained_tile(odd, 2),
              slice_tile = support::stained_tile(slices, 3);
  const placed_tile tiles[] = {
      contiguous_tile(g, tile),
      {g, tile, 4, {0, 3 * 176 + 4, 3}, 1},      // rows of words with room between them
      {g, tile, 1, {0, 3 * 176, 3}, 1},          // words that do not begin at one
      {g, tile, 0, {0, 4 * 176, 4}, 1},          // four bytes a pixel
      {g, tile, 0, {0, 176, 1}, 150 * 176},      // planes
      {g, tile, 8, {0, 180, 1}, 150 * 180},      // a part of planes
      {g, tile, 0, {0, 180, 1}, 150 * 180 + 1},  // planes that begin within a word
      contiguous_tile(odd, odd_tile),
      {odd, odd_tile, 0, {0, 168, 1}, 131 * 168},
      contiguous_tile(slices, slice_tile),
      {slices, slice_tile, 0, {128 * 100, 128, 1}, 2 * 128 * 100},
      {slices, slice_tile, 0, {3, 6 * 128, 6}, 1},  // slices pixel by pixel
  };
  int i = 0;
  for (const placed_tile& t : tiles) {
    const stain_basis expected = by_rounds(fit_macenko{}, t.host());
    const device_fit found = on_device(fit_macenko{}, t.device());
    EXPECT_TRUE(found.basis == expected) << "tile " << i;
    EXPECT_EQ(expected.status, stain_status::ok);
    EXPECT_GT(found.listed, .01) << "tile " << i;
    EXPECT_LT(found.listed, .1) << "tile " << i;
    ++i;
  }
}

TEST(percentile_window_device, knows_which_pixels_count) {
  const grid g{.extents = {1, 170, 180}};
  const placed_tile tile = contiguous_tile(g, support::stained_tile(g, 4, .7));
  std::vector<std::int16_t> labels;
  for (std::int64_t i = 0; i < g.voxels(); ++i)
    labels.push_back(static_cast<std::int16_t>(static_cast<int>(mix64(static_cast<std::uint64_t>(i / 9)) % 7) - 1));
  const support::device_array<std::int16_t> device_labels(labels);
  const auto here = contiguous(static_cast<const std::int16_t*>(labels.data()), g),
             there = contiguous(static_cast<const std::int16_t*>(device_labels.data()), g);
  for (const fit_macenko& how :
       {fit_macenko{}, fit_macenko{.stained = stained_rule::all_above, .least_density = 0},
        fit_macenko{.percentile = percentile_rule::nearest, .alpha = .1, .concentration_percentile = 99.9},
        fit_macenko{.alpha = 0, .concentration_percentile = 100}, fit_macenko{.concentrations_of_all = true},
        fit_macenko{.centered = false, .concentration_percentile = 60}, fit_macenko{.penalty = .05},
        fit_macenko{.stained = stained_rule::any_above}, fit_macenko{.stained = stained_rule::luminosity},
        fit_macenko{.single_stain_angle = 85, .fallback = stain_fallback::given}}) {
    EXPECT_TRUE(on_device(how, tile.device()).basis == by_rounds(how, tile.host()));
    EXPECT_TRUE(on_device(how, tile.device(), inside(there)).basis == by_rounds(how, tile.host(), inside(here)));
    EXPECT_TRUE(on_device(how, tile.device(), labeled(there, {{1, 2, 3}, 5})).basis ==
                by_rounds(how, tile.host(), labeled(here, {{1, 2, 3}, 5})));
  }
}

// What pixels show: shares of eosin among both stains, and amounts of both together.
struct shown {
  double least_share, most_share, least, most;
};

// The fit samples every fifth pixel of every seventh row. These show something else than all others.
bytes misleading_tile(const grid& g, const shown& sampled, const shown& others) {
  bytes tile;
  for (std::int64_t y = 0; y < g.extents[1]; ++y)
    for (std::int64_t x = 0; x < g.extents[2]; ++x) {
      const shown& s = y % 7 == 0 && x % 5 == 0 ? sampled : others;
      const auto random = [&](std::uint64_t n) {
        return static_cast<double>(mix64(mix64(static_cast<std::uint64_t>(y * g.extents[2] + x)) + n) >> 11) * 0x1p-53;
      };
      const double share = s.least_share + (s.most_share - s.least_share) * random(1);
      const double amount = s.least + (s.most - s.least) * random(2);
      for (std::size_t c = 0; c < 3; ++c) {
        const double density = amount * ((1 - share) * support::hematoxylin[c] + share * support::eosin[c]);
        tile.push_back(static_cast<std::uint8_t>(std::lround(240 * std::exp(-density))));
      }
    }
  return tile;
}

TEST(percentile_window_device, sees_that_a_sample_misleads) {
  const grid g{.extents = {1, 210, 200}};
  const shown usual{.2, .8, .8, 1.6};
  const shown samples[] = {
      usual,
      {0, 1, .8, 1.6},    // both limits of angles leave out too much,
      {.4, .6, .8, 1.6},  // or too little for the list,
      {0, .77, .8, 1.6},  // or one of them too much while the list is long enough
      {.23, 1, .8, 1.6},
      {.2, .8, .8, 2.5},  // the same of concentrations
      {.2, .8, .8, 1.2},
      {.2, .5, .8, 1.6},
      {.5, .8, .8, 1.6},
      {.2, .2, 1.6, 1.6},  // a single color
  };
  for (const shown& s : samples) {
    const placed_tile tile = contiguous_tile(g, misleading_tile(g, s, usual));
    const stain_basis expected = by_rounds(fit_macenko{}, tile.host());
    EXPECT_EQ(expected.status, stain_status::ok);
    EXPECT_TRUE(on_device(fit_macenko{}, tile.device()).basis == expected);
    stain_basis on_cpu;
    fit(cpu{}, fit_macenko{}, std::vector{tile.host()}, everything{}, std::span(&on_cpu, 1));
    EXPECT_TRUE(on_cpu == expected);
  }
}

// Sixteen colors, so that many pixels share the key of a percentile.
TEST(percentile_window_device, tells_keys_of_many_pixels) {
  const grid g{.extents = {1, 160, 160}};
  bytes tile = support::stained_tile(g, 5);
  for (std::size_t i = 48; i < tile.size(); ++i) tile[i] = tile[mix64(i / 3) % 16 * 3 + i % 3];
  const placed_tile t = contiguous_tile(g, tile);
  EXPECT_TRUE(on_device(fit_macenko{}, t.device()).basis == by_rounds(fit_macenko{}, t.host()));
}

TEST(percentile_window_device, has_room_for_large_tiles) {
  const grid g{.extents = {1, 4, 132000}};  // more than 65536 pixels for each eighth of the tile
  const placed_tile t = contiguous_tile(g, support::stained_tile(g, 6));
  EXPECT_TRUE(on_device(fit_macenko{}, t.device()).basis == by_rounds(fit_macenko{}, t.host()));
  const fit_macenko many{.alpha = 10};
  EXPECT_TRUE(on_device(many, t.device()).basis == by_rounds(many, t.host()));
}

// Of colors, how many a sieve should keep, keeps, and leaves out although it must not.
struct sieved {
  unsigned beyond, kept, lost;
};

__global__ void sieve_colors(const __grid_constant__ detail::macenko_rules rules,
                             const __grid_constant__ detail::macenko_solver solver, std::uint32_t first,
                             std::uint32_t second, unsigned colors, sieved* result) {
  __shared__ detail::shared_room<detail::macenko_block> block_room;
  __shared__ detail::shared_room<detail::sifting> sifting_room;
  detail::macenko_block& b = block_room.get();
  detail::sifting& s = sifting_room.get();
  if (threadIdx.x == 0) {
    b.solver = solver;
    s.limit[0] = first;
    s.limit[1] = second;
  }
  __syncthreads();
  detail::make_tables(rules, b);
  __syncthreads();
  detail::make_sieve(rules, b, s);
  __syncthreads();
  const bool angles = solver.round == detail::coarse_angles;
  const bool all = !angles && rules.fit.concentrations_of_all;
  sieved mine{};
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < colors; i += gridDim.x * blockDim.x) {
    const unsigned color = i * 2654435761u >> 8;
    const unsigned level[3] = {color & 255, color >> 8 & 255, color >> 16};
    float od[3];
    std::uint32_t sum = 0;
    for (int c = 0; c < 3; ++c) {
      od[c] = b.density[level[c]];
      sum += s.sieve[c][level[c]];
    }
    bool beyond = all || solver.stained(rules, od[0], od[1], od[2]);
    if (angles) {
      const std::uint32_t digit = solver.angle_key(od[0], od[1], od[2]) >> 11;
      beyond = beyond && (digit <= first || digit >= second);
    } else {
      const auto mixture = solver.unmixing.mixture<false>(od[0], od[1], od[2]);
      beyond = beyond && (detail::macenko_key(mixture.c[0], solver.scale) >> 11 >= first ||
                          detail::macenko_key(mixture.c[1], solver.scale) >> 11 >= second);
    }
    const bool kept = (sum & 0x80008000u) != 0x80008000u;
    mine.beyond += beyond ? 1u : 0u;
    mine.kept += kept ? 1u : 0u;
    mine.lost += beyond && !kept ? 1u : 0u;
  }
  atomicAdd(&result->beyond, mine.beyond);
  atomicAdd(&result->kept, mine.kept);
  atomicAdd(&result->lost, mine.lost);
}

TEST(percentile_window_device, keeps_every_color_beyond_the_limits) {
  const grid g{.extents = {1, 100, 100}};
  const placed_tile tile = contiguous_tile(g, support::stained_tile(g, 7));
  const unsigned colors = 1u << 18;
  for (const fit_macenko& how :
       {fit_macenko{}, fit_macenko{.density = optical_density::plus_one_clipped(), .stained = stained_rule::all_above},
        fit_macenko{.least_density = 0, .concentrations_of_all = true}}) {
    macenko_search search(how);
    while (!search.done()) {
      const bool angles = search.solver().round == detail::coarse_angles;
      if (angles || search.solver().round == detail::coarse_concentrations) {
        const int limits[][2] = {{1700, 2300}, {1900, 2200}, {2040, 2050}, {2100, 2900}, {1200, 1300}};
        for (const auto& limit : limits) {
          const auto first = static_cast<std::uint32_t>(angles ? limit[0] : limit[0] / 8 + 1850),
                     second = static_cast<std::uint32_t>(angles ? limit[1] : limit[1] / 8 + 1850);
          support::device_array<sieved> counts{std::vector<sieved>(1)};
          sieve_colors<<<4, detail::stain_threads>>>(search.rules(), search.solver(), first, second, colors,
                                                     counts.data());
          const sieved found = counts.values()[0];
          EXPECT_EQ(found.lost, 0u) << first << " to " << second;
          EXPECT_LE(found.kept - found.beyond, colors / 200) << first << " to " << second;
        }
      }
      search.add(cpu{}, tile.host());
      search.advance();
    }
  }
}

}  // namespace
