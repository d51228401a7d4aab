// SPDX-License-Identifier: Apache-2.0
// Random parameters (`draws`) and random fields (`random_field`) are drawn for one operation on one sample.
#pragma once

#include <cstdint>

#include "../math/elementary.hpp"
#include "distribution.hpp"
#include "stream.hpp"

namespace suture {

// A random field has a value for each element, computed where it is used: the value of element e is a function of e and
// the stream alone. Four elements (4k .. 4k+3) share a block, one Philox evaluation. uniform4 and normal4 write all
// four, with the bits of uniform and normal.
class random_field {
public:
  random_field() = default;
  SUTURE_FN explicit constexpr random_field(const stream_id& id) : stream_(id) {}
  explicit random_field(const stream& known) : stream_(known) {}

  // Returns a multiple of 2^-24 in [0, 1).
  SUTURE_FN float uniform(std::uint64_t element) const {
    return unit_half_open(stream_.block(element >> 2)[static_cast<std::uint32_t>(element)]);
  }
  SUTURE_FN void uniform4(std::uint64_t block, float (&u)[4]) const {
    const philox_block words = stream_.block(block);
    u[0] = unit_half_open(words.word[0]);
    u[1] = unit_half_open(words.word[1]);
    u[2] = unit_half_open(words.word[2]);
    u[3] = unit_half_open(words.word[3]);
  }

  // Returns the four words of a block, for use as keys.
  SUTURE_FN philox_block words(std::uint64_t block) const { return stream_.block(block); }

  // Returns a standard normal value.
  SUTURE_FN float normal(std::uint64_t element) const {
    const philox_block words = stream_.block(element >> 2);
    const bool second_half = (element & 2u) != 0;
    const normal_pair pair = box_muller(second_half ? words.word[2] : words.word[0],  //
                                        second_half ? words.word[3] : words.word[1]);
    return (element & 1u) != 0 ? pair.sine : pair.cosine;
  }
  SUTURE_FN void normal4(std::uint64_t block, float (&z)[4]) const {
    const philox_block words = stream_.block(block);
    const normal_pair a = box_muller(words.word[0], words.word[1]);
    const normal_pair b = box_muller(words.word[2], words.word[3]);
    z[0] = a.cosine;
    z[1] = a.sine;
    z[2] = b.cosine;
    z[3] = b.sine;
  }

  // Writes the normals of Count consecutive elements for loops on the host: the bits of normal(), vectorized over
  // blocks.
  template <int Count>
  SUTURE_INLINE void normal_row(std::uint64_t first, float (&z)[Count]) const {
    static_assert(Count % 4 == 0);
    constexpr int lanes = Count / 4;
    const auto offset = static_cast<int>(first & 3u);
    std::uint32_t word[4][lanes];
    stream_.blocks(first >> 2, word);
    float part[4][lanes];
    for (int j = 0; j < 4; j += 2)
      for (int l = 0; l < lanes; ++l) {
        const normal_pair pair = box_muller(word[j][l], word[j + 1][l]);
        part[j][l] = pair.cosine;
        part[j + 1][l] = pair.sine;
      }
    lay_out(part, offset, z, [&](float(&last)[4]) { normal4((first >> 2) + lanes, last); });
  }

  // Writes uniform() for a row of elements.
  template <int Count>
  SUTURE_INLINE void uniform_row(std::uint64_t first, float (&u)[Count]) const {
    static_assert(Count % 4 == 0);
    constexpr int lanes = Count / 4;
    const auto offset = static_cast<int>(first & 3u);
    std::uint32_t word[4][lanes];
    stream_.blocks(first >> 2, word);
    float part[4][lanes];
    for (int j = 0; j < 4; ++j)
      for (int l = 0; l < lanes; ++l) part[j][l] = unit_half_open(word[j][l]);
    lay_out(part, offset, u, [&](float(&last)[4]) { uniform4((first >> 2) + lanes, last); });
  }

private:
  // Writes the values of whole blocks, part[j][l] being element 4 l + j, as a row that starts `offset` elements later;
  // the last values come from the next block, by next().
  template <int Count, class Next>
  SUTURE_INLINE static void lay_out(const float (&part)[4][Count / 4], int offset, float (&row)[Count],
                                    const Next& next) {
    float aligned[Count + 4];
    SUTURE_KEEP_LOOP
    for (int l = 0; l < Count / 4; ++l) {
      aligned[4 * l] = part[0][l];
      aligned[4 * l + 1] = part[1][l];
      aligned[4 * l + 2] = part[2][l];
      aligned[4 * l + 3] = part[3][l];
    }
    if (offset == 0) {
      for (int i = 0; i < Count; ++i) row[i] = aligned[i];
      return;
    }
    float last[4];
    next(last);
    for (int j = 0; j < 4; ++j) aligned[Count + j] = last[j];
    for (int i = 0; i < Count; ++i) row[i] = aligned[i + offset];
  }

  stream stream_;
};

// This class makes the scalar draws of one operation on one sample, in the order of its calls. Every call uses a fixed
// number of 32-bit slots, stated with the call, whatever it returns: an operation that always makes the same calls
// never shifts its own later draws.
class draws {
public:
  SUTURE_HD constexpr draws(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, std::uint16_t operation)
      : id_{seed, epoch, sample, operation, 0}, stream_(id_) {}

  // Draws from slot 1 on, for one lane of a stream row. Slot 0 decides whether the operation applies.
  SUTURE_INLINE draws(planned_streams& known, int lane) : known_(&known), lane_(lane), slot_(1) {
    if (known.made()) load_first_block();
  }

  // Returns a (1 - u) + b u for a multiple u of 2^-24 in [0, 1). The result is in [a, b) whatever the rounding, and a
  // if a == b. One slot.
  SUTURE_HD float uniform(float a, float b) {
    if (!(a < b)) {
      ++slot_;
      return a;
    }
    // Both branches are rarely taken, so that the result need not wait for them.
    const float value = blend(a, b, unit_half_open(next()));
    return value < a ? a : value < b ? value : float_below(b);
  }

  // Skips one slot.
  SUTURE_HD constexpr void skip() { ++slot_; }

  // Returns the numbers of the next N slots, multiples of 2^-24 in [0, 1), computed side by side for many draws at
  // once.
  template <int N>
  void units(float (&u)[N]) {
    constexpr int lanes = ((N + 3) / 4 + 7) / 8 * 8;
    float all[4 + 4 * lanes];
    // The rest of the current block is used first, then whole blocks.
    const std::uint32_t used = slot_ % 4;
    if (used != 0) {
      if (slot_ >= end_) look_ahead();
      for (std::uint32_t i = 0; i < 4; ++i) all[i] = unit_half_open(words_[slot_ - used - begin_ + i]);
    }
    std::uint32_t word[4][lanes];
    own_stream().blocks((slot_ + 3) / 4, word);
    SUTURE_KEEP_LOOP
    for (int l = 0; l < lanes; ++l)
      for (int i = 0; i < 4; ++i) all[4 + 4 * l + i] = unit_half_open(word[i][l]);
    const float* const from = all + (used != 0 ? used : 4);
    for (int i = 0; i < N; ++i) u[i] = from[i];
    slot_ += N;
  }

  // Returns true with probability p rounded up to a multiple of 2^-24: never for 0, always for 1. One slot.
  SUTURE_HD bool bernoulli(float p) { return unit_half_open(next()) < p; }

  // Draws an integer in [0, n), 1 <= n <= 2^32. One slot.
  SUTURE_HD std::int64_t integer(std::int64_t n) { return integer_below(next(), n); }

  // Draws a normal value, at most 5.77 deviations from the mean. Two slots.
  SUTURE_HD float normal(float mean, float deviation) {
    const std::uint32_t radius = next();
    const std::uint32_t angle = next();
    return fma(deviation, box_muller(radius, angle).cosine, mean);
  }

  // Draws the exponential of a uniform value between ln a and ln b, 0 < a <= b, limited to [a, b]. One slot.
  SUTURE_HD float log_uniform(float a, float b) {
    const float value = math::exp(uniform(math::log(a), math::log(b)));
    return value < a ? a : value > b ? b : value;
  }

  // Draws uniformly from [a, 1) or from [1, b), each with probability 1/2: a reduction as often as an increase. Two
  // slots.
  SUTURE_HD float mixture(float a, float b) {
    const bool reduce = bernoulli(0.5f);
    return uniform(math::detail::select(reduce, a, 1.0f), math::detail::select(reduce, 1.0f, b));
  }

  // Returns the operation's random field number `purpose`, 1 or above. No slot.
  SUTURE_HD constexpr random_field field(std::uint16_t purpose) const {
#if !defined(__CUDA_ARCH__)
    if (known_) return random_field(known_->of_purpose(purpose, lane_));
#endif
    stream_id id = id_;
    id.purpose = purpose;
    return random_field(id);
  }

private:
  SUTURE_HD std::uint32_t next() {
    if (slot_ >= end_) look_ahead();
    return words_[slot_++ - begin_];
  }

  SUTURE_INLINE void load_first_block() {
    const philox_block first = known_->first(lane_);
    for (int i = 0; i < 4; ++i) words_[i] = first.word[i];
    end_ = 4;
  }

  // Computes the words of the block of the next slot; on the host also those of the blocks that follow, at little cost.
  SUTURE_HD SUTURE_NOINLINE void look_ahead() {
    const std::uint32_t block = slot_ / 4;
    begin_ = 4 * block;
#if defined(__CUDA_ARCH__)
    const philox_block made = stream_.block(block);
    for (int i = 0; i < 4; ++i) words_[i] = made.word[i];
    end_ = begin_ + 4;
#else
    if (known_ && block == 0) return load_first_block();
    std::uint32_t word[4][most_words / 4];
    own_stream().blocks(block, word);
    for (int l = 0; l < most_words / 4; ++l)
      for (int i = 0; i < 4; ++i) words_[4 * l + i] = word[i][l];
    end_ = begin_ + most_words;
#endif
  }

  stream own_stream() const { return known_ ? (*known_)[lane_] : stream_; }

  stream_id id_;
  stream stream_;
  planned_streams* known_ = nullptr;
  int lane_ = 0;
  static constexpr int most_words = 32;
  std::uint32_t slot_ = 0, begin_ = 0, end_ = 0;  // words_ are those of the slots from begin_ to end_
  std::uint32_t words_[most_words];
};

}  // namespace suture
