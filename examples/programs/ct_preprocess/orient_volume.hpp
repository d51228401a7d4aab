// SPDX-License-Identifier: Apache-2.0
// A volume with its axes along those of an anatomical code; nothing is interpolated.
#pragma once

#include <string_view>

#include "common/volume.hpp"
#include "suture/suture.hpp"

namespace suture::examples {

template <class T>
volume<T> oriented(const volume<T>& from, std::string_view code, int threads) {
  const auto in = contiguous(from.voxels.data(), from.grid);
  const auto plan = suture::plan(orient{.to = code} | sampling<nearest, edge>{} | cast<T>{}, std::span(&in, 1));
  volume<T> made{plan.output_grid(0), std::vector<T>(from.voxels.size())};
  const auto out = contiguous(made.voxels.data(), made.grid);
  suture::run(cpu{.threads = threads}, plan, suture::image(in, out));
  return made;
}

}  // namespace suture::examples
