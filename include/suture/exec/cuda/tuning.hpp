// SPDX-License-Identifier: Apache-2.0
// The numbers that decide how the CUDA executor divides work. None of them changes a bit of a result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace suture::detail {

// The fused kernel.
inline constexpr int fused_threads = 256;
// A block makes a tile of 32 x 8 x 16 voxels (x, y, z), each lane of a warp a walk along z. Tiles are up to 64 deep
// where at least `many_tiles` of them are left for the multiprocessors.
inline constexpr std::int32_t tile_x = 32, tile_y = 8, tile_z = 16, deepest_tile = 64;
inline constexpr std::int64_t many_tiles = 4096;
// Tiles of deformations whose lanes run along z are this deep. Displacements are made ahead for so many control cells
// along a row of lanes.
inline constexpr std::int32_t room_planes = 8, room_cells = 4;
// Lanes of a warp along x, the others along y. Of a turned source, pixels of a squarer warp stay inside more often.
inline constexpr int warp_x = 16, warp_x_of_turned_pixels = 8;
// Tiles one below the other that a block makes of planes, in which a lane has no z to walk along.
inline constexpr std::int32_t rows_in_plane = 4;
// Runs of 8 voxels that a block makes where nothing is moved; pixels that a thread makes at once.
inline constexpr std::int32_t runs_in_block = 512;
inline constexpr int pixels_at_once = 4;
// Blocks on a multiprocessor that registers are to last for: 64 registers a thread, or 80. A sample with many
// parameters needs more of them, and so do several pixels at once of a turned source.
inline constexpr int blocks_at_once = 4, blocks_of_many_registers = 3;
inline constexpr std::size_t large_record = 1050;  // bytes

// Records of samples that travel in the arguments of a kernel: bytes of a small batch, and of any other.
inline constexpr int carried_bytes = 4000, largest_arguments = 32000;
inline constexpr int upload_threads = 128;

}  // namespace suture::detail
