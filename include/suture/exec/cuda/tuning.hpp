// SPDX-License-Identifier: Apache-2.0
// The numbers that decide how the CUDA executor divides work. Results do not depend on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace suture::detail {

// Threads of a block of the fused kernel.
inline constexpr int fused_threads = 256;
// A block computes a tile of 32 x 8 x 16 voxels (x, y, z), each thread a column along z. The depth is doubled up to 64
// while at least `many_tiles` tiles remain.
inline constexpr std::int32_t tile_x = 32, tile_y = 8, tile_z = 16, deepest_tile = 64;
inline constexpr std::int64_t many_tiles = 4096;
// Shared memory for columns of displacements (shared_columns.cuh): the planes of a tile whose lanes run along z, and
// the control cells along a row of lanes.
inline constexpr std::int32_t room_planes = 8, room_cells = 4;
// The number of a warp's lanes along x; the others are in further rows. Where pixels of a rotated image are
// interpolated, a warp covers a squarer area, which is more often wholly inside the source.
inline constexpr int warp_x = 16, warp_x_of_turned_pixels = 8;
// Tiles along y that a block computes where every output is one plane, so that threads have no columns along z.
inline constexpr std::int32_t rows_in_plane = 4;
// Runs of 8 voxels that a block of the path vector_runs computes; pixels of the path rgb_vectors that a thread computes
// together.
inline constexpr std::int32_t runs_in_block = 512;
inline constexpr int pixels_at_once = 4;
// Blocks that a multiprocessor must be able to hold: the compiler may then use 64 registers a thread, or 80. Records
// with many parameters (large_record) need more registers, and so does the interpolation of several pixels together.
inline constexpr int blocks_at_once = 4, blocks_of_many_registers = 3;
inline constexpr std::size_t large_record = 1050;  // bytes

// Bytes of records in the arguments of a kernel: at most, for a small batch whose fused kernel carries them, and for an
// upload.
inline constexpr int carried_bytes = 4000, largest_arguments = 32000;
inline constexpr int upload_threads = 128;

}  // namespace suture::detail
