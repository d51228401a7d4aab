// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash of all voxels of a view, limited by memory bandwidth, to test whether an array has changed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "../exec/cpu/run.hpp"

namespace suture {

namespace detail {

inline constexpr std::uint64_t xxh_primes[5] = {0x9e3779b185ebca87ull, 0xc2b2ae3d27d4eb4full, 0x165667b19e3779f9ull,
                                                0x85ebca77c2b2ae63ull, 0x27d4eb2f165667c5ull};

template <class T>
T read_bytes(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline std::uint64_t xxh_round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * xxh_primes[1], 31) * xxh_primes[0];
}

}  // namespace detail

// Returns the XXH64 of bytes by Yann Collet (xxhash.com, specification 0.1.1), on a little-endian machine.
inline std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  using detail::read_bytes;
  const auto& prime = detail::xxh_primes;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t hash = seed + prime[4];
  if (left >= 32) {
    std::uint64_t lanes[4] = {seed + prime[0] + prime[1], seed + prime[1], seed, seed - prime[0]};
    for (; left >= 32; at += 32, left -= 32)
      for (std::size_t i = 0; i < 4; ++i) lanes[i] = detail::xxh_round(lanes[i], read_bytes<std::uint64_t>(at + 8 * i));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = (hash ^ detail::xxh_round(0, lane)) * prime[0] + prime[3];
  }
  hash += bytes.size();
  for (; left >= 8; at += 8, left -= 8)
    hash = std::rotl(hash ^ detail::xxh_round(0, read_bytes<std::uint64_t>(at)), 27) * prime[0] + prime[3];
  if (left >= 4) {
    hash = std::rotl(hash ^ read_bytes<std::uint32_t>(at) * prime[0], 23) * prime[1] + prime[2];
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) hash = std::rotl(hash ^ read_bytes<std::uint8_t>(at) * prime[4], 11) * prime[0];
  hash = (hash ^ (hash >> 33)) * prime[1];
  hash = (hash ^ (hash >> 29)) * prime[2];
  return hash ^ (hash >> 32);
}

namespace detail {

struct hashed_axis {
  std::int64_t extent, stride;
};

// Returns the axes of a view by descending stride. Axes without a gap between them are joined.
template <class T>
std::vector<hashed_axis> memory_axes(const view<T>& v) {
  std::vector<hashed_axis> axes = {{v.channels, v.channel_stride}};
  for (int k = 0; k < 3; ++k) axes.push_back({v.grid.extents[k], v.stride[k]});
  std::erase_if(axes, [](const hashed_axis& a) { return a.extent == 1; });
  const auto step = [](const hashed_axis& a) { return a.stride < 0 ? -a.stride : a.stride; };
  std::stable_sort(axes.begin(), axes.end(),
                   [&](const hashed_axis& a, const hashed_axis& b) { return step(a) > step(b); });
  if (axes.empty()) axes.push_back({1, 1});
  std::vector<hashed_axis> joined = {axes[0]};
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (joined.back().stride == axes[i].extent * axes[i].stride)
      joined.back() = {joined.back().extent * axes[i].extent, axes[i].stride};
    else
      joined.push_back(axes[i]);
  return joined;
}

}  // namespace detail

// content_hash: a hash of every voxel of every channel, of the extents, the strides and the size of an element. Views
// of one element type with equal hashes have equal contents, except for collisions with a probability of about 2^-64.
// The hash is not cryptographic. It does not depend on the number of threads.
// Errors: a view that cannot be read.
template <class T>
std::uint64_t content_hash(const cpu& exec, const view<const T>& v, const site& where = {"content_hash"}) {
  check(v, where);
  detail::memory_check(exec)(v.data, where, "view: ");
  const std::vector<detail::hashed_axis> axes = detail::memory_axes(v);
  const detail::hashed_axis inner = axes.back();
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) rows *= axes[i].extent;
  // Rows are divided into pieces, which are hashed one by one.
  constexpr std::int64_t most = (std::int64_t{1} << 18) / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t pieces = (inner.extent + most - 1) / most;
  const std::int64_t together = std::max<std::int64_t>(1, most / inner.extent);  // rows of one task
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows * pieces));
  detail::parallel_for(exec.threads, (rows * pieces + together - 1) / together, [&](std::int64_t task) {
    std::vector<T> gathered;
    for (std::int64_t i = task * together; i < std::min(rows * pieces, (task + 1) * together); ++i) {
      const std::int64_t first = i % pieces * most, count = std::min(most, inner.extent - first);
      const T* from = v.data + first * inner.stride;
      std::int64_t row = i / pieces;
      for (std::size_t k = axes.size() - 1; k-- > 0; row /= axes[k].extent)
        from += row % axes[k].extent * axes[k].stride;
      if (inner.stride != 1) {
        gathered.resize(static_cast<std::size_t>(count));
        for (std::int64_t x = 0; x < count; ++x) gathered[static_cast<std::size_t>(x)] = from[x * inner.stride];
        from = gathered.data();
      }
      hashes[static_cast<std::size_t>(i)] = xxh64(std::as_bytes(std::span(from, static_cast<std::size_t>(count))));
    }
  });
  const std::array<std::int64_t, 9> shape = {v.grid.extents[0], v.grid.extents[1], v.grid.extents[2],
                                             v.stride[0],       v.stride[1],       v.stride[2],
                                             v.channels,        v.channel_stride,  sizeof(T)};
  return xxh64(std::as_bytes(std::span(hashes)), xxh64(std::as_bytes(std::span(shape))));
}

}  // namespace suture
