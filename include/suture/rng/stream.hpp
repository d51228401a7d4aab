// SPDX-License-Identifier: Apache-2.0
// Which random number belongs to what: a stream per (seed, epoch, sample, operation, purpose), a block of four words
// per 64-bit index in it. Two Philox evaluations, each a bijection of its counter, so that for one seed no two draws
// share a counter and key.
#pragma once

#include <cstdint>

#include "philox.hpp"

namespace suture {

// What a stream is for. `sample` is the persistent id of the sample in its data set, never its place in a batch;
// `operation` stays the same when other operations are inserted before it. Purpose 0 holds scalar parameters, 1 and
// above are random fields.
struct stream_id {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sample = 0;
  std::uint16_t operation = 0;
  std::uint16_t purpose = 0;
};

class stream {
public:
  stream() = default;
  SUTURE_FN explicit constexpr stream(const stream_id& id)
      : state_(philox4x32({{low(id.sample), high(id.sample), id.epoch,
                            (std::uint32_t{id.operation} << 16) | std::uint32_t{id.purpose}}},
                          {{low(id.seed), high(id.seed)}})) {}

  // The four words that tell this stream from every other of its seed.
  SUTURE_FN constexpr const philox_block& state() const { return state_; }

  SUTURE_FN constexpr philox_block block(std::uint64_t index) const {
    return philox4x32({{low(index), high(index), state_.word[2], state_.word[3]}}, {{state_.word[0], state_.word[1]}});
  }

  // Blocks first .. first + Lanes - 1 side by side, word by word.
  template <int Lanes>
  SUTURE_INLINE void blocks(std::uint64_t first, std::uint32_t (&word)[4][Lanes]) const {
    const std::uint32_t low_of_first = low(first), high_of_first = high(first);
    for (int l = 0; l < Lanes; ++l) {
      word[0][l] = low_of_first + static_cast<std::uint32_t>(l);
      word[1][l] = high_of_first + (word[0][l] < low_of_first ? 1u : 0u);
    }
    for (int l = 0; l < Lanes; ++l) {
      word[2][l] = state_.word[2];
      word[3][l] = state_.word[3];
    }
    philox4x32_lanes(word, {{state_.word[0], state_.word[1]}});
  }

private:
  SUTURE_FN static constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  SUTURE_FN static constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  philox_block state_{};
};

}  // namespace suture
