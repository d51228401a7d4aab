// SPDX-License-Identifier: Apache-2.0
// Values of the reference with a bound on how far a result in float32 may be from them, carried through a chain: every
// operation widens it by its own rounding and by what it does to the bound of its input. Where a decision hangs on less
// than the bound (the side of a tie, which of two labels) the value is unknown and not compared.
#pragma once

#include <functional>

#include "inputs.hpp"
#include "ref/random.hpp"
#include "ref/rotation.hpp"
#include "ref/sample.hpp"

namespace fuzz {

inline constexpr double unknown = std::numeric_limits<double>::infinity();
inline constexpr double float_epsilon = 0x1p-23;

struct bounded {
  double value = 0, error = 0;
};

// A result of a formula, and the largest number on the way to it: a unit of rounding is taken of that.
struct rounded {
  double value, magnitude;
};

// One sample on its way through a chain.
struct sample_reference {
  suture::grid grid;
  std::vector<std::vector<bounded>> channels;
  std::vector<std::function<reference::point(const reference::point&)>> pulls;  // the last is nearest to the output
  std::uint64_t seed = 0, id = 0;
  std::uint32_t epoch = 0;
  double place_error = 0;    // of the places read from, in voxels, beyond the usual
  int only = -1;             // the channel that an operation changes, -1: all
  bool places_known = true;  // no geometry so far was without a reference
  bool known = true;         // no operation so far was without a reference
  std::string without;       // the first that was
  std::vector<std::string> failures;

  reference::size3 size() const { return {grid.extents[0], grid.extents[1], grid.extents[2]}; }
  std::size_t voxels() const { return static_cast<std::size_t>(grid.voxels()); }
};

// Where the numbers of a random operation come from: its id among those of the chain.
struct operation_fields {
  const sample_reference& of;
  std::uint16_t id = 0;
  bool random = false;
  // The words of field `purpose`; a field that nobody made is that of zeros.
  reference::words4 field(std::uint16_t purpose) const {
    return random ? reference::stream(of.seed, of.epoch, of.id, id, purpose) : reference::words4{};
  }
};

// f(x, channel, element of the channel) is applied to every voxel; f grows or falls within the bound of x.
template <class F>
void pointwise(sample_reference& r, const F& f) {
  for (std::size_t c = 0; c < r.channels.size(); ++c) {
    if (r.only >= 0 && static_cast<int>(c) != r.only) continue;
    for (std::size_t e = 0; e < r.channels[c].size(); ++e) {
      bounded& x = r.channels[c][e];
      if (x.error == unknown) continue;
      const rounded y = f(x.value, c, e);
      double error = 0;
      if (x.error > 0 && !std::isnan(x.value))
        error = std::fmax(std::abs(f(x.value - x.error, c, e).value - y.value),
                          std::abs(f(x.value + x.error, c, e).value - y.value));
      error += 4 * float_epsilon * y.magnitude + 1e-36;
      x = {y.value, std::isfinite(error) && y.magnitude < 1e30 ? error : unknown};
    }
  }
}

// The least and the greatest of all bounds; and whether all values are known.
inline double largest_error(const std::vector<bounded>& channel) {
  double most = 0;
  for (const bounded& v : channel) most = std::fmax(most, std::isnan(v.value) ? 0 : v.error);
  return most;
}
inline void forget(std::vector<bounded>& channel) {
  for (bounded& v : channel) v.error = unknown;
}

}  // namespace fuzz
