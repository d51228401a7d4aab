// SPDX-License-Identifier: Apache-2.0
// The layouts of the results of fits: for each kind of result the bytes of one and where its numbers begin, in the order
// in which Python packs them.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <suture/abi/fit.hpp>

namespace suture::abi {

// The bytes of a struct, then where each of these numbers begins in it.
template <class Result, class... Numbers>
std::vector<std::int64_t> layout_of(const Result& of, const Numbers&... numbers) {
  const auto* const begin = reinterpret_cast<const char*>(&of);
  return {static_cast<std::int64_t>(sizeof(Result)), (reinterpret_cast<const char*>(&numbers) - begin)...};
}
inline auto layout_of_moments() {
  const moments m;
  return layout_of(m, m.mean, m.standard_deviation, m.minimum, m.maximum, m.tally.count, m.tally.excluded,
                   m.tally.undeclared, m.status, m.ddof, m.center, m.reciprocal);
}
inline auto layout_of_range() {
  const intensity_range i;
  return layout_of(i, i.low, i.high, i.tally.count, i.tally.excluded, i.tally.undeclared, i.status, i.origin,
                   i.reciprocal);
}
inline auto layout_of_threshold() {
  const threshold t;
  return layout_of(t, t.value, t.tally.count, t.tally.excluded, t.tally.undeclared, t.status);
}
inline auto layout_of_percentiles() {
  const percentiles<3> p;
  return layout_of(p, p.value[0], p.value[1], p.value[2], p.tally.count, p.tally.excluded, p.tally.undeclared,
                   p.status);
}
// Layout of landmark_map; one with an even and one with an odd number of landmarks are described, since their padding
// differs between slopes and counts.
inline auto layout_of_two_landmarks() {
  const landmark_map<2> l;
  return layout_of(l, l.source[0], l.source[1], l.target[0], l.target[1], l.slope[0], l.tally.count, l.tally.excluded,
                   l.tally.undeclared, l.status);
}
inline auto layout_of_three_landmarks() {
  const landmark_map<3> l;
  return layout_of(l, l.source[0], l.source[1], l.source[2], l.target[0], l.target[1], l.target[2], l.slope[0],
                   l.slope[1], l.tally.count, l.tally.excluded, l.tally.undeclared, l.status);
}
inline auto layout_of_colors() {
  const color_moments<lab> c;
  return layout_of(c, c.mean[0], c.mean[1], c.mean[2], c.standard_deviation[0], c.standard_deviation[1],
                   c.standard_deviation[2], c.tally.count, c.tally.excluded, c.tally.undeclared, c.status, c.ddof,
                   c.center[0], c.center[1], c.center[2], c.deviation[0], c.deviation[1], c.deviation[2],
                   c.reciprocal[0], c.reciprocal[1], c.reciprocal[2]);
}
inline auto layout_of_sharpness() {
  const sharpness s;
  return layout_of(s, s.laplacian_variance, s.mean, s.standard_deviation, s.pixels, s.status);
}
// Lists the members that callers read; the other members are for the operations that apply the fit.
inline auto layout_of_stains() {
  const stain_basis b;
  return layout_of(b, b.stains[0][0], b.stains[0][1], b.stains[1][0], b.stains[1][1], b.stains[2][0], b.stains[2][1],
                   b.max_concentration[0], b.max_concentration[1], b.tally.count, b.tally.excluded, b.tally.undeclared,
                   b.pixels, b.status, b.unchanged);
}

inline void result_layouts(const request& given) {
  reader r(given, "result_layouts");
  const std::array layouts = {layout_of_moments(),     layout_of_range(),         layout_of_threshold(),
                              layout_of_percentiles(), layout_of_two_landmarks(), layout_of_three_landmarks(),
                              layout_of_colors(),      layout_of_sharpness(),     layout_of_stains()};
  std::array<std::span<std::int64_t>, layouts.size()> written;
  for (std::size_t i = 0; i < layouts.size(); ++i)
    written[i] = r.result<std::int64_t>("layout", static_cast<std::int64_t>(layouts[i].size()));
  r.finish();
  for (std::size_t i = 0; i < layouts.size(); ++i) std::ranges::copy(layouts[i], written[i].begin());
}

}  // namespace suture::abi
