// SPDX-License-Identifier: Apache-2.0
// Label maps of several volumes, and memory for the counts of their classes.
#pragma once

#include <suture/exec/cpu/run.hpp>
#include <suture/patch/select_patches.hpp>

#include <random>

namespace support {

using namespace suture;

struct table_memory {
  std::vector<std::uint64_t> words;
  explicit table_memory(std::size_t bytes) : words((bytes + 7) / 8, ~std::uint64_t{0}) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }
};

template <class Classes>
table_memory table_of(const Classes& map, int threads = 1) {
  table_memory m(class_counts_bytes(map));
  count_classes(cpu{.threads = threads}, map, m.bytes());
  return m;
}

inline grid volume(std::int64_t z, std::int64_t y, std::int64_t x) { return {.extents = {z, y, x}}; }

// Labels in blobs, of 5 values and one that is not declared (77).
template <class L = std::uint8_t>
std::vector<L> blobs(const grid& g, unsigned seed, int longest = 60) {
  std::mt19937 random(seed);
  std::vector<L> labels(static_cast<std::size_t>(g.voxels()), 0);
  for (std::size_t i = 0; i < labels.size();) {
    const std::size_t run = 1 + random() % static_cast<unsigned>(longest);
    const auto value = static_cast<int>(random() % 12);
    for (std::size_t j = i; j < std::min(labels.size(), i + run); ++j)
      labels[j] = static_cast<L>(value < 5 ? value : value == 5 ? 77 : 0);
    i += run;
  }
  return labels;
}

// Ragged volumes of one block, of several, and of a last block that is not whole.
struct labeled_batch {
  std::vector<grid> grids{volume(1, 1, 40), volume(17, 31, 29), volume(16, 16, 16), volume(20, 33, 41)};
  std::vector<std::uint64_t> ids{7, 1000000007, 3, 1ull << 40};
  std::vector<std::vector<std::uint8_t>> data;
  std::vector<view<const std::uint8_t>> labels;

  labeled_batch() {
    for (std::size_t i = 0; i < grids.size(); ++i) data.push_back(blobs(grids[i], static_cast<unsigned>(i)));
    for (std::size_t i = 0; i < grids.size(); ++i)
      labels.push_back(contiguous<const std::uint8_t>(data[i].data(), grids[i]));
  }
};

}  // namespace support
