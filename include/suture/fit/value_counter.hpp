// SPDX-License-Identifier: Apache-2.0
// Counts the values of 8- and 16-bit rows on the CPU, at a cost of about one increment in memory per voxel.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "reduction.hpp"

namespace suture::detail {

// Four counters for each value, used alternately, so that neighbors of one value do not wait for each other. They are
// 32-bit and are emptied into 64-bit ones before they could overflow. Only counters within the range of the values seen
// are ever touched.
template <class T>
class value_counter {
public:
  std::uint64_t undeclared = 0;

  // Counts at most `most` voxels before it moves their counts to 64-bit counters.
  explicit value_counter(std::int64_t most = 0xffffffff) : most_(most) {}
  value_counter(const value_counter& other) : most_(other.most_) { merge(other); }
  value_counter& operator=(const value_counter&) = delete;

  template <class Map, class Selector>
  void row(const voxel_row<T, Map>& r, const Selector& select) {
    const auto [values, stride, map, map_stride, count] = r;
    reach(values, stride, count);
    std::int64_t x = 0;
    if constexpr (std::is_same_v<Selector, everything::selector>) {
      for (; stride == 1 && x + 4 <= count; x += 4)
        for (int lane = 0; lane < 4; ++lane) ++lanes_of(values[x + lane])[lane];
    } else if constexpr (std::is_same_v<Selector, typename inside_selection<Map>::selector> && sizeof(Map) == 1) {
      for (; map_stride == 1 && x + 8 <= count; x += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, map + x, 8);
        if (eight == 0) continue;
        for (int i = 0; i < 8; ++i) lanes_of(values[(x + i) * stride])[i % 4] += map[x + i] != 0;
      }
    }
    for (; x < count; ++x) {
      const T value = values[x * stride];
      const verdict v = select(value, map[x * map_stride]);
      if (v == verdict::selected)
        ++lanes_of(value)[x % 4];
      else if (v == verdict::undeclared)
        ++undeclared;
    }
  }

  void merge(const value_counter& other) {
    other.each([&](std::int64_t bin, std::uint64_t n) { total_at(bin) += n; });
    undeclared += other.undeclared;
  }

  // Calls f(bin, count) for every value seen, in ascending order.
  template <class F>
  void each(const F& f) const {
    const bool all = !totals_.empty();
    for (std::int64_t bin = all ? 0 : first_; bin < (all ? bins : end_); ++bin) {
      std::uint64_t n = all ? totals_[static_cast<std::size_t>(bin)] : 0;
      if (bin >= first_ && bin < end_)
        for (int lane = 0; lane < 4; ++lane) n += lanes_[static_cast<std::size_t>(4 * bin + lane)];
      if (n != 0) f(bin, n);
    }
  }

private:
  static constexpr std::int64_t bins = std::int64_t{1} << counted<T>::bits;

  std::uint32_t* lanes_of(T value) { return lanes_.get() + 4 * static_cast<std::ptrdiff_t>(counted<T>::key(value)); }
  std::uint64_t& total_at(std::int64_t bin) {
    totals_.resize(static_cast<std::size_t>(bins));
    return totals_[static_cast<std::size_t>(bin)];
  }

  // Makes counters for the values of a row.
  void reach(const T* values, std::int64_t stride, std::int64_t count) {
    if (lanes_ == nullptr) lanes_.reset(new std::uint32_t[static_cast<std::size_t>(4 * bins)]);
    if (since_move_ + count > most_) move_to_totals();
    since_move_ += count;
    T least = values[0], greatest = values[0];
    if (stride == 1)
      for (std::int64_t x = 0; x < count; ++x) {
        least = values[x] < least ? values[x] : least;
        greatest = values[x] > greatest ? values[x] : greatest;
      }
    else
      for (std::int64_t x = 0; x < count; ++x) {
        least = values[x * stride] < least ? values[x * stride] : least;
        greatest = values[x * stride] > greatest ? values[x * stride] : greatest;
      }
    const auto low = static_cast<std::int64_t>(counted<T>::key(least));
    const auto high = static_cast<std::int64_t>(counted<T>::key(greatest)) + 1;
    if (first_ == end_) {
      first_ = low;
      end_ = low;
    }
    if (low < first_) clear(low, first_);
    if (high > end_) clear(end_, high);
    first_ = std::min(first_, low);
    end_ = std::max(end_, high);
  }
  void clear(std::int64_t low, std::int64_t high) { std::fill(lanes_.get() + 4 * low, lanes_.get() + 4 * high, 0u); }

  void move_to_totals() {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(bins));
    each([&](std::int64_t bin, std::uint64_t n) { all[static_cast<std::size_t>(bin)] = n; });
    totals_ = std::move(all);
    clear(first_, end_);
    since_move_ = 0;
  }

  std::unique_ptr<std::uint32_t[]> lanes_;
  std::vector<std::uint64_t> totals_;
  std::int64_t first_ = 0, end_ = 0;  // counters that were cleared
  std::int64_t since_move_ = 0;       // voxels
  std::int64_t most_;
};

}  // namespace suture::detail
