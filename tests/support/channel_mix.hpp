// SPDX-License-Identifier: Apache-2.0
// An operation on color for tests of what carries such operations.
#pragma once

#include <suture/pipeline/concepts.hpp>

namespace support {

// Each channel gets a share of the next one, and of where the pixel stands.
struct channel_mix {
  float amount;

  static constexpr std::string_view name = "channel_mix";

  SUTURE_FN suture::rgb operator()(suture::rgb v, const suture::voxel& at) const {
    const float place = static_cast<float>(at.x % 3 + at.y % 5 + at.z);
    return {
        {suture::fma(amount, v.c[1], v.c[0]), suture::fma(amount, v.c[2], v.c[1]), suture::fma(amount, place, v.c[2])}};
  }
};

}  // namespace support
