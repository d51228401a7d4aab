// SPDX-License-Identifier: Apache-2.0
// A stream of random numbers belongs to a (seed, epoch, sample, operation, purpose) and has a block of four words for
// each 64-bit index. Philox is evaluated once for the state of a stream and once for each block. Both are
// bijections of their counters, so that for one seed no two draws share a counter and key.
#pragma once

#include <cstdint>
#include <cstring>

#include "distribution.hpp"
#include "philox.hpp"

namespace suture {

// Identifies the use of a random stream. `sample` is the persistent id of the sample in its data set, never its
// position in a batch; `operation` stays the same when other operations are inserted before it. Purpose 0 holds scalar
// parameters, 1 and above are random fields.
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

  // Makes the stream that has this state().
  SUTURE_FN explicit constexpr stream(const philox_block& state) : state_(state) {}

  // Returns the four words that distinguish this stream from every other of its seed.
  SUTURE_FN constexpr const philox_block& state() const { return state_; }

  SUTURE_FN constexpr philox_block block(std::uint64_t index) const {
    return philox4x32({{low(index), high(index), state_.word[2], state_.word[3]}}, {{state_.word[0], state_.word[1]}});
  }

  // Computes the blocks first .. first + Lanes - 1 side by side, word by word.
  template <int Lanes>
  SUTURE_INLINE void blocks(std::uint64_t first, std::uint32_t (&word)[4][Lanes]) const {
    const std::uint32_t low_of_first = low(first), high_of_first = high(first);
    // The loops are not unrolled: they would store word by word, and a load of a whole register waits for such stores.
    SUTURE_KEEP_LOOP
    for (int l = 0; l < Lanes; ++l) {
      word[0][l] = low_of_first + static_cast<std::uint32_t>(l);
      word[1][l] = high_of_first + (word[0][l] < low_of_first ? 1u : 0u);
    }
    SUTURE_KEEP_LOOP
    for (int l = 0; l < Lanes; ++l) {
      word[2][l] = state_.word[2];
      word[3][l] = state_.word[3];
    }
    philox4x32_lanes(word, {{state_.word[0], state_.word[1]}});
  }

private:
  SUTURE_FN static constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  SUTURE_FN static constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  template <int>
  friend class stream_row;

  philox_block state_{};
};

// The streams of one operation for Lanes samples, each with its first block, made side by side when one of them is
// asked for.
template <int Lanes>
class stream_row {
public:
  void begin(const stream_id& all_but_sample, const std::uint64_t (&samples)[Lanes]) {
    id_ = all_but_sample;
    for (int l = 0; l < Lanes; ++l) samples_[l] = samples[l];
    made_ = false;
    further_purpose_ = all_but_sample.purpose;
  }
  // make_streams and make_first_blocks are two steps: a plan makes the streams of all operations first, so that their
  // latencies overlap.
  void make_streams() { make_states(id_, samples_, state_); }
  void make_first_blocks() {
    for (int l = 0; l < Lanes; l += 8)  // as wide as the stores that wrote them
      for (int i = 2; i < 4; ++i) std::memcpy(&first_[i][l], &state_[i][l], 8 * sizeof(std::uint32_t));
    for (int l = 0; l < Lanes; ++l) first_[0][l] = first_[1][l] = 0;
    philox4x32_lanes(first_, philox_keys<Lanes>{state_});
    made_ = true;
  }

  bool made() const { return made_; }
  stream operator[](int lane) {
    if (!made_) make();
    return stream(block_of(state_, lane));
  }
  philox_block first(int lane) {
    if (!made_) make();
    return block_of(first_, lane);
  }
  // Returns one bit per lane: whether its first word, as a number in [0, 1), is below p.
  std::uint32_t below(float p) const {
    std::uint32_t lanes = 0;
    for (int first = 0; first < Lanes; first += 8)  // as wide as the stores that wrote them
      for (int l = first; l < first + 8; ++l) lanes |= (unit_half_open(first_[0][l]) < p ? 1u : 0u) << l;
    return lanes;
  }

  // Returns the stream of another purpose; those of all lanes are made when the first is asked for.
  stream of_purpose(std::uint16_t purpose, int lane) {
    if (purpose == id_.purpose) return (*this)[lane];
    if (purpose != further_purpose_) {
      stream_id id = id_;
      id.purpose = purpose;
      make_states(id, samples_, further_);
      further_purpose_ = purpose;
    }
    return stream(block_of(further_, lane));
  }

private:
  SUTURE_NOINLINE void make() {
    make_streams();
    make_first_blocks();
  }
  static void make_states(const stream_id& all_but_sample, const std::uint64_t (&samples)[Lanes],
                          std::uint32_t (&state)[4][Lanes]) {
    for (int l = 0; l < Lanes; ++l) {
      state[0][l] = stream::low(samples[l]);
      state[1][l] = stream::high(samples[l]);
      state[2][l] = all_but_sample.epoch;
      state[3][l] = (std::uint32_t{all_but_sample.operation} << 16) | std::uint32_t{all_but_sample.purpose};
    }
    philox4x32_lanes(state, philox_key{{stream::low(all_but_sample.seed), stream::high(all_but_sample.seed)}});
  }
  static philox_block block_of(const std::uint32_t (&word)[4][Lanes], int lane) {
    return {{word[0][lane], word[1][lane], word[2][lane], word[3][lane]}};
  }
  stream_id id_;
  std::uint64_t samples_[Lanes];
  bool made_;
  std::uint32_t state_[4][Lanes], first_[4][Lanes];
  std::uint16_t further_purpose_;  // of the streams in further_; that of id_ as long as there are none
  std::uint32_t further_[4][Lanes];
};

// A stream row of the size that a plan uses.
using planned_streams = stream_row<16>;

}  // namespace suture
