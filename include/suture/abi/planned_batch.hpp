// SPDX-License-Identifier: Apache-2.0
// A chain that was compiled for a caller in another language: the plan of a batch with the views that it reads.
#pragma once

#include <utility>
#include <vector>

#include "../evaluate/binding.hpp"
#include "../plan/plan.hpp"
#include "record.hpp"
#include "request.hpp"

namespace suture::abi {

// An image: In is read, Out written.
template <class In, class Out>
struct image_slot {
  std::vector<view<const In>> in;
  std::vector<view<Out>> out;

  void read(const request& r, std::int64_t bound) { in = views_of<const In>(r, bound); }
  void take(const request& r, std::int64_t bound, std::int64_t) { out = views_of<Out>(r, bound); }
  auto bound() const { return image(in, out); }
};

// A label map, with what its labels are stored as.
template <class In, class Out, class Conversion = as_finished>
struct label_slot {
  Conversion conversion{};
  std::vector<view<const In>> in;
  std::vector<view<Out>> out;
  std::vector<std::vector<view<Out>>> levels;

  void read(const request& r, std::int64_t bound) { in = views_of<const In>(r, bound); }
  void take(const request& r, std::int64_t bound, std::int64_t count) {
    out = views_of<Out>(r, bound);
    levels.clear();
    for (std::int64_t k = 0; k < count; ++k) levels.push_back(views_of<Out>(r, bound + 1 + k));
  }
  auto bound() const { return labels(in, out, conversion, no_levels{}); }
};

// The same with smaller grids to store it to as well.
template <class In, class Out, class Conversion = as_finished>
struct level_slot : label_slot<In, Out, Conversion> {
  auto bound() const { return labels(this->in, this->out, this->conversion, deep_supervision(this->levels)); }
};

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
      slot.take(r, bound, levels[b]);
      bound += 1 + levels[b];
    });
  }
  template <class F>
  auto bound(const F& f) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return f(plan_, get<I>(slots_).bound()...); }
    (std::index_sequence_for<Slots...>{});
  }

private:
  template <class F>
  void each(const F& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(get<I>(slots_), I), ...); }
    (std::index_sequence_for<Slots...>{});
  }
  std::vector<grid> read(const request& r) {
    each([&](auto& slot, std::size_t b) { slot.read(r, static_cast<std::int64_t>(b)); });
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

// The maps of a plan, for modules that move points by them or undo them.
struct geometry {
  const void* first;
  std::int64_t bytes, samples;
};
inline suture::detail::geometry_list geometry_of(const geometry& g) {
  return {static_cast<const suture::detail::sample_geometry*>(g.first), static_cast<std::size_t>(g.bytes),
          static_cast<std::size_t>(g.samples)};
}

}  // namespace suture::abi
