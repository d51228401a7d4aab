// SPDX-License-Identifier: Apache-2.0
// A run against its evaluator: rows of voxels share work on the CPU and must give the bits of each voxel alone.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "suture/suture.hpp"

namespace support {

// Values 0 .. 1 that repeat nowhere in step with a row, with two channels in extents {3, 5, x}.
inline std::vector<float> uneven_values(std::int64_t count) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 100;
  return x;
}

// Runs the operations on {3, 5, x} voxels and one plane of {1, 5, x}, x around the width of rows, every element against
// the evaluator's.
template <class Operations>
void expect_rows_of_lone_voxels(const Operations& operations, std::int64_t channels = 2) {
  const std::vector<std::uint64_t> ids{77};
  for (const std::int64_t depth : {std::int64_t{3}, std::int64_t{1}})
    for (const std::int64_t width : {1, 15, 16, 17, 31, 32, 33, 127}) {
      const suture::grid g{.extents = {depth, 5, width}};
      const std::vector<float> x = uneven_values(g.voxels() * channels);
      std::vector<float> y(x.size());
      const auto in = suture::contiguous(x.data(), g, channels);
      const auto out = suture::contiguous(y.data(), g, channels);
      const auto plan = suture::plan(operations, std::vector{g}, {.seed = 12, .epoch = 1, .sample_ids = ids});
      const auto pair = suture::image(in, out);
      suture::run(suture::cpu{}, plan, pair);

      const std::size_t bytes = suture::workspace_bytes(plan, pair);
      const std::align_val_t alignment{256};
      auto* const space = static_cast<std::byte*>(::operator new(bytes, alignment));
      const auto evaluate = suture::prepare(suture::cpu{.workspace = {space, bytes}}, plan, pair);
      std::size_t i = 0, different = 0;
      for (std::int32_t channel = 0; channel < channels; ++channel)
        for (std::int32_t z = 0; z < depth; ++z)
          for (std::int32_t row = 0; row < 5; ++row)
            for (std::int32_t column = 0; column < width; ++column, ++i) {
              const float alone = evaluate(0, z, row, column, channel);
              different += std::memcmp(&alone, &y[i], sizeof alone) != 0 ? 1 : 0;
            }
      EXPECT_EQ(different, 0u) << "width " << width;
      ::operator delete(space, alignment);
    }
}

}  // namespace support
