// SPDX-License-Identifier: Apache-2.0
// The numbers that decide how the CPU executor divides work. None of them changes a bit of a result.
#pragma once

#include <cstdint>

namespace suture::detail {

// Samples are cut into bricks, which threads take one by one. A brick that is walked strip by strip along x has 8 rows
// and 32 planes, fewer planes if threads would wait for work: its source stays in the second-level cache.
inline constexpr std::int32_t brick_rows = 8, brick_depth = 32, least_brick_depth = 8;
// A brick that is read in the order of memory has as many voxels as one of these with rows of 192 voxels.
inline constexpr std::int32_t typical_row = 192;
// Rows of a brick of a pipeline without geometry.
inline constexpr std::int32_t pointwise_brick_rows = 64;
// Bricks wanted for each thread: while there are fewer, bricks are made less deep.
inline constexpr std::int64_t bricks_for_thread = 8;
// Control vectors of a deformation that are worth several threads; fewer are computed by one.
inline constexpr std::int64_t control_vectors_for_threads = 1 << 12;
// Rows that a thread takes at once after the fused part.
inline constexpr std::int32_t rows_of_part = 32;
// Channels of at most this many voxels are not split between threads after the fused part, if each thread has this many
// channels.
inline constexpr std::int64_t small_channel = 1 << 17, channels_for_thread = 3;
// Outputs of more bytes than this are written past the caches.
inline constexpr std::int64_t stays_in_cache = 16 << 20;
// Strips of pixels that are looked up before the first of them is finished: a wide load of values that were just stored
// in parts would wait for these stores.
inline constexpr int strips_looked_up = 8;

}  // namespace suture::detail
