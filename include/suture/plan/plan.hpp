// SPDX-License-Identifier: Apache-2.0
// plan(pipeline, batch, settings) plans a pipeline for a batch of grids or views.
#pragma once

#include <concepts>
#include <ranges>
#include <span>
#include <vector>

#include "planned.hpp"

namespace suture {

// Returns the grids of a range of views.
template <class Views>
std::vector<grid> grids(const Views& views) {
  std::vector<grid> g;
  for (const auto& v : views) g.push_back(v.grid);
  return g;
}

inline namespace SUTURE_BUILD {

// Plans a chain, or one operation, for a batch given as grids or as views, or for a single one of either.
template <class Pipeline, class Batch>
auto plan(const Pipeline& operations, const Batch& batch, const settings& s = {}) {
  const auto c = as_chain(operations);
  using result = planned<std::remove_const_t<decltype(c)>>;
  if constexpr (std::is_same_v<Batch, grid>) {
    return result(c, std::span(&batch, 1), s);
  } else if constexpr (detail::is_view_v<Batch>) {
    return result(c, std::span(&batch.grid, 1), s);
  } else if constexpr (!std::ranges::range<Batch>) {
    static_assert(std::ranges::range<Batch>, "suture: plan takes grids or views, a range of them or a single one");
    return result(c, std::span<const grid>(), s);
  } else if constexpr (std::is_same_v<std::ranges::range_value_t<Batch>, grid>) {
    return result(c, std::span<const grid>(batch), s);
  } else {
    const std::vector<grid> g = grids(batch);
    return result(c, g, s);
  }
}

// A seed alone gets an error message instead of a list of candidates.
template <class Pipeline, class Batch, std::integral Seed>
auto plan(const Pipeline& operations, const Batch& batch, Seed seed) {
  static_assert(
      !std::is_integral_v<Seed>,
      "suture: plan takes settings, not a number: {.seed = 42, .sample_ids = ids}, with one id for each sample");
  return plan(operations, batch, settings{.seed = static_cast<std::uint64_t>(seed)});
}

}  // namespace SUTURE_BUILD

}  // namespace suture
