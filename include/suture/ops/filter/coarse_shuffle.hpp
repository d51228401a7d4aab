// SPDX-License-Identifier: Apache-2.0
// Random permutation of the voxels within boxes.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../image/grid.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../value/coarse_dropout.hpp"

namespace suture {

namespace detail {

// Mixes the bits of x by two multiplications whose upper and lower words are folded: every bit of the result depends on
// every bit of x.
SUTURE_FN std::uint32_t scrambled(std::uint32_t x) {
  const std::uint64_t a = std::uint64_t{0xD2511F53u} * x;
  const std::uint64_t b =
      std::uint64_t{0xCD9E8D57u} * (static_cast<std::uint32_t>(a >> 32) ^ static_cast<std::uint32_t>(a) ^ 0x9E3779B9u);
  return static_cast<std::uint32_t>(b >> 32) ^ static_cast<std::uint32_t>(b);
}

// Returns the source of element i of a permutation of 0 .. n - 1, n <= 2^31: a Feistel network over the least power of
// two that holds n, repeated until the result is below n. It needs no table and is a bijection for every key.
SUTURE_FN std::uint32_t permuted(std::uint32_t i, std::uint32_t n, const philox_block& key) {
  std::uint32_t bits = 0;
  while (bits < 31 && (std::uint32_t{1} << bits) < n) ++bits;
  const std::uint32_t lower = bits / 2, upper_mask = (std::uint32_t{1} << (bits - lower)) - 1;
  const std::uint32_t lower_mask = (std::uint32_t{1} << lower) - 1;
  do {
    std::uint32_t high = i >> lower, low = i & lower_mask;
    SUTURE_UNROLL
    for (std::uint32_t round = 0; round < 4; ++round) {
      low ^= scrambled(high ^ key.word[round]) & lower_mask;
      high ^= scrambled(low + (key.word[round] << 16 | key.word[round] >> 16)) & upper_mask;
    }
    i = high << lower | low;
  } while (i >= n);
  return i;
}

}  // namespace detail

// Permutes the voxels within each of `count` boxes at random, every channel by itself; overlapping boxes act one after
// the other. The order of box b in channel c comes from the words of block 2^32 b + c of `field`. Boxes are in voxels
// of the patch; parts outside it are cut off. Errors: a count outside 0 .. 32, a size that is negative or above 2^24, a
// box of more than 2^31 voxels.
struct coarse_shuffle {
  using hole = coarse_dropout::hole;

  std::array<hole, detail::most_holes> holes;
  std::int32_t count;
  random_field field = {};

  static constexpr std::string_view name = "coarse_shuffle";
  static constexpr auto fields = named("holes", first_of(&coarse_shuffle::holes, &coarse_shuffle::count));
  static constexpr auto parameters = named("holes", required(first_of(&coarse_shuffle::holes, &coarse_shuffle::count)),
                                           "field", left_out(&coarse_shuffle::field));

  struct functor {
    hole holes[detail::most_holes];
    std::int32_t count;
    random_field field;

    SUTURE_FN bool active(std::int32_t) const { return count > 0; }

    template <class Read>
    SUTURE_FN float operator()(const Read& read, const std::int32_t (&n)[3], std::int32_t z, std::int32_t y,
                               std::int32_t x, std::int32_t channel) const {
      std::int32_t at[3] = {z, y, x};
      for (std::int32_t b = count - 1; b >= 0; --b)  // the last box acted last and is undone first
        if (within(holes[b], 0, at[0]) && within(holes[b], 1, at[1]) && within(holes[b], 2, at[2]))
          step_back(b, n, at, channel);
      return read(at[0], at[1], at[2]);
    }

    SUTURE_FN static bool within(const hole& box, int axis, std::int32_t index) {
      return coarse_dropout::functor::within(box, axis, index);
    }

    // Moves `at` to the voxel that box b copied from.
    SUTURE_FN void step_back(std::int32_t b, const std::int32_t (&n)[3], std::int32_t (&at)[3],
                             std::int32_t channel) const {
      std::uint32_t start[3], size[3];
      for (int k = 0; k < 3; ++k) {
        const std::int32_t begin = holes[b].start[k], end = begin + holes[b].size[k];
        start[k] = static_cast<std::uint32_t>(begin > 0 ? begin : 0);
        size[k] = static_cast<std::uint32_t>(end < n[k] ? end : n[k]) - start[k];
      }
      std::uint32_t i = 0;
      for (int k = 0; k < 3; ++k) i = i * size[k] + (static_cast<std::uint32_t>(at[k]) - start[k]);
      const std::uint64_t block = static_cast<std::uint64_t>(b) << 32 | static_cast<std::uint32_t>(channel);
      i = detail::permuted(i, size[0] * size[1] * size[2], field.words(block));
      const std::uint32_t row = i / size[2];
      at[2] = static_cast<std::int32_t>(start[2] + (i - row * size[2]));
      const std::uint32_t plane = row / size[1];
      at[1] = static_cast<std::int32_t>(start[1] + (row - plane * size[1]));
      at[0] = static_cast<std::int32_t>(start[0] + plane);
    }
  };

  functor prepare(const site& where) const {
    require(count >= 0 && count <= detail::most_holes, where, "count ", count, " is not in 0 .. ", detail::most_holes);
    functor f{{}, count, field};
    for (std::int32_t b = 0; b < count; ++b) {
      const hole& box = f.holes[b] = holes[static_cast<std::size_t>(b)];
      box.check(b, 1 << 24, where);
      const double voxels = static_cast<double>(box.size[0]) * box.size[1] * box.size[2];
      require(voxels <= 0x1p31, where, "hole ", b, " has ", voxels, " voxels, at most 2^31 can be shuffled");
    }
    return f;
  }
};

// coarse_shuffle with boxes drawn for each sample, the same for all channels, as random_coarse_dropout draws them:
// their number from `holes`, the size of each along each axis uniform between `size` and `max_size` (0: the whole axis,
// and as `size`), the place uniform among those inside the patch. Errors: holes outside 0 .. 32, a negative size, size
// above max_size, a max_size where size is 0 or above 2^31 - 1, boxes that may have more than 2^31 voxels. Source:
// MONAI RandCoarseShuffle; Kang et al. 2017, PatchShuffle regularization.
struct random_coarse_shuffle {
  integer_interval holes;
  extent3 size;
  extent3 max_size = {0, 0, 0};
  float probability = 1;

  static constexpr std::string_view name = "random_coarse_shuffle";
  static constexpr std::uint16_t kind = 42;
  static constexpr auto parameters =
      named("holes", required(&random_coarse_shuffle::holes), "size", required(&random_coarse_shuffle::size),
            "max_size", &random_coarse_shuffle::max_size, "probability", &random_coarse_shuffle::probability);

  void check(const site& where) const { as_dropout().check(where); }

  // 193 slots whatever the number of holes.
  coarse_shuffle draw(draws& random, const grid& g, const site& where) const {
    double largest = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t most = std::max(size[axis], max_size[axis]), n = g.extents[axis];
      largest *= static_cast<double>(most == 0 ? n : std::min(most, n));
    }
    require(largest <= 0x1p31, where, "boxes may have ", largest, " voxels, at most 2^31 can be shuffled");
    const coarse_dropout boxes = as_dropout().draw(random, g, where);
    return {.holes = boxes.holes, .count = boxes.count, .field = random.field(1)};
  }

private:
  random_coarse_dropout as_dropout() const { return {.holes = holes, .size = size, .max_size = max_size}; }
};

}  // namespace suture
