// SPDX-License-Identifier: Apache-2.0
// The geometry operation that does nothing.
#pragma once

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"

namespace suture {

// identity: out(i) = in(i). For a place in a pipeline that must hold some geometry operation. Errors: none.
struct identity {
  static constexpr std::string_view name = "identity";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = true;
  static constexpr auto parameters = named();

  geometry_step step(const grid& input, const site&) const { return {input, affine_map{}}; }
};

}  // namespace suture
