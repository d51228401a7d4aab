// SPDX-License-Identifier: Apache-2.0
// A chain that was compiled for a caller in another language: the plan of a batch with the views that it reads.
#pragma once

#include "planned_chain.hpp"

namespace suture::abi {

// Slots are bound in the order of the arrays of a request. `lists` of the request that planned must outlive this.
template <class Chain, class... Slots>
class planned_batch {
public:
  planned_batch(const Chain& operations, const request& r, Slots... slots)
      : slots_{{{std::move(slots)}...}}, plan_(operations, read(r), settings_of(r)) {}

  std::size_t size() const { return plan_.size(); }
  const planned<Chain>& plan() const { return plan_; }
  void write_grids(array* out) const {
    for (std::size_t i = 0; i < size(); ++i) write_grid(plan_.output_grid(i), out[i]);
  }

  // Where the outputs are; levels[b] more for the slot b.
  void take(const request& r) {
    const auto levels = numbers(r).s<std::int64_t>(0);
    std::int64_t bound = 0;
    each([&](auto& slot, std::size_t b) {
      views(slot.out, r, bound);
      if constexpr (requires { slot.levels; }) {
        slot.levels.clear();
        for (std::int64_t k = 0; k < levels[b]; ++k) views(slot.levels.emplace_back(), r, bound + 1 + k);
      }
      bound += 1 + levels[b];
    });
  }
  template <class F>
  auto bound(const F& f) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return f(plan_, get<I>(slots_).bound()...); }
    (std::index_sequence_for<Slots...>{});
  }

private:
  template <class T>
  static void views(std::vector<view<T>>& all, const request& r, std::int64_t bound) {
    all = views_of<T>(r, bound);
  }
  template <class F>
  void each(const F& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(get<I>(slots_), I), ...); }
    (std::index_sequence_for<Slots...>{});
  }
  std::vector<grid> read(const request& r) {
    each([&](auto& slot, std::size_t b) { views(slot.in, r, static_cast<std::int64_t>(b)); });
    return grids(get<0>(slots_).in);
  }
  static settings settings_of(const request& r) {
    settings s{.seed = r.seed,
               .epoch = r.epoch,
               .evaluation = r.evaluation != 0,
               .image = r.image,
               .same_ids = r.same_ids != 0};
    if (r.sample_ids != nullptr) s.sample_ids = {r.sample_ids, static_cast<std::size_t>(r.samples)};
    return s;
  }

  pack<Slots...> slots_;
  planned<Chain> plan_;
};

}  // namespace suture::abi
