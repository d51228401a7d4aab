// SPDX-License-Identifier: Apache-2.0
// Counts of the classes of label maps, against those of single voxels.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/labeled_batch.hpp"

namespace {

using namespace suture;
using namespace support;

TEST(class_counts, are_those_of_the_voxels_whatever_the_threads) {
  const labeled_batch b;
  const auto map = label_classes(b.labels, 5);
  const table_memory one = table_of(map, 1);
  table_memory four = table_of(map, 4);
  EXPECT_EQ(one.words, four.words);
  for (std::size_t i = 0; i < b.grids.size(); ++i) {
    const class_counts c = counts_of(map, four.bytes(), i);
    const auto voxels = static_cast<std::size_t>(b.grids[i].voxels());
    ASSERT_EQ(c.blocks, static_cast<std::int64_t>((voxels + 4095) / 4096));
    std::vector<std::uint64_t> totals(6, 0);
    for (std::size_t block = 0; block < static_cast<std::size_t>(c.blocks); ++block) {
      std::vector<std::uint32_t> expected(6, 0);
      for (std::size_t v = block * 4096; v < std::min(voxels, (block + 1) * 4096); ++v)
        ++expected[std::min<std::size_t>(b.data[i][v], 5)];
      for (std::size_t k = 0; k < 5; ++k)
        EXPECT_EQ(c.counts[k * static_cast<std::size_t>(c.blocks) + block], expected[k])
            << i << ' ' << block << ' ' << k;
      for (std::size_t k = 0; k < 6; ++k) totals[k] += expected[k];
    }
    for (std::int32_t k = 0; k < 5; ++k) EXPECT_EQ(c.total(k), totals[static_cast<std::size_t>(k)]);
    EXPECT_EQ(c.unclassified(), totals[5]);
    EXPECT_GT(c.unclassified() + (i == 0 ? 1u : 0u), 0u);
    EXPECT_EQ(c.nonfinite(), 0u);
  }
}

TEST(class_counts, read_any_strides) {
  const grid g = volume(9, 21, 35);
  const std::vector<std::uint8_t> dense = blobs(g, 5);
  // x slowest, and every row reversed.
  std::vector<std::uint8_t> other(dense.size());
  view<const std::uint8_t> v{other.data() + 20 * 9, g, {1, -9, 21 * 9}, 1, 0};
  for (std::int64_t z = 0; z < 9; ++z)
    for (std::int64_t y = 0; y < 21; ++y)
      for (std::int64_t x = 0; x < 35; ++x)
        other[static_cast<std::size_t>(20 * 9 + z - 9 * y + 21 * 9 * x)] =
            dense[static_cast<std::size_t>((z * 21 + y) * 35 + x)];
  const auto plain = contiguous<const std::uint8_t>(dense.data(), g);
  EXPECT_EQ(table_of(label_classes(v, 5)).words, table_of(label_classes(plain, 5)).words);
}

// Values by place in a volume whose axes lie in memory in this order, the last one densest.
template <class T, class F>
view<const T> in_order(std::vector<T>& memory, const grid& g, const int (&order)[3], const F& value) {
  const extent3& n = g.extents;
  view<const T> v{nullptr, g, {}, 1, 0};
  std::int64_t step = 1;
  for (int j = 2; j >= 0; --j) {
    v.stride[order[j]] = step;
    step *= n[order[j]];
  }
  memory.resize(static_cast<std::size_t>(step));
  for (std::int64_t at = 0; at < step; ++at) {
    const std::int64_t z = at / n[2] / n[1], y = at / n[2] % n[1], x = at % n[2];
    memory[static_cast<std::size_t>(z * v.stride[0] + y * v.stride[1] + x * v.stride[2])] =
        value(static_cast<std::size_t>(at));
  }
  v.data = memory.data();
  return v;
}

constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

TEST(class_counts, are_those_of_single_voxels_in_every_order_of_axes) {
  for (const extent3& n : {extent3{37, 43, 50}, extent3{70, 9, 17}, extent3{1, 530, 500}, extent3{40, 1, 33}}) {
    const grid g = volume(n[0], n[1], n[2]);
    const auto voxels = static_cast<std::size_t>(g.voxels());
    const std::vector<std::uint8_t> labels = blobs(g, 5);
    std::vector<float> image(voxels);
    for (std::size_t v = 0; v < voxels; ++v) image[v] = v % 11 == 0 ? NAN : static_cast<float>(v % 7) - 3.0f;
    const extent3 size{1, 1, 16};
    std::uint64_t declared[6] = {}, sets[4] = {}, weight = 0;
    const std::size_t blocks = (voxels + 4095) / 4096;
    std::vector<std::uint32_t> of_block(5 * blocks), set_of_block(2 * blocks), weight_of_block(blocks);
    for (std::size_t v = 0; v < voxels; ++v) {
      const std::size_t label = std::min<std::size_t>(labels[v], 5);
      ++declared[label];
      if (label < 5) ++of_block[label * blocks + v / 4096];
      const std::size_t set = labels[v] > 0 ? 1 : !std::isfinite(image[v]) ? 3 : image[v] > 0.5f ? 0 : 2;
      ++sets[set];
      if (set < 2) ++set_of_block[set * blocks + v / 4096];
      const std::size_t x = v % static_cast<std::size_t>(n[2]);
      const std::size_t of_voxel = x >= 8 && x <= static_cast<std::size_t>(n[2]) - 8 ? v % 65536 : 0;
      weight += of_voxel;
      weight_of_block[v / 4096] += static_cast<std::uint32_t>(of_voxel);
    }
    for (const auto& order : orders) {
      SCOPED_TRACE(testing::Message() << order[0] << order[1] << order[2] << " of " << n);
      std::vector<std::uint8_t> memory;
      std::vector<float> pixels;
      std::vector<std::uint16_t> heavy;
      const auto seg = in_order(memory, g, order, [&](std::size_t v) { return labels[v]; });
      const auto weights =
          in_order(heavy, g, order, [](std::size_t v) { return static_cast<std::uint16_t>(v % 65536); });
      for (const int threads : {1, 3}) {
        const auto map = label_classes(seg, 5);
        table_memory m = table_of(map, threads);
        const class_counts c = counts_of(map, m.bytes(), 0);
        for (std::int32_t k = 0; k < 6; ++k) EXPECT_EQ(c.total(k), declared[k]) << k;
        EXPECT_TRUE(std::equal(of_block.begin(), of_block.end(), c.counts));
        // The image in the order of the labels, and in another one.
        for (const auto* other : {&order, &orders[3]}) {
          const auto ct = in_order(pixels, g, *other, [&](std::size_t v) { return image[v]; });
          const auto both = foreground_background(seg, ct, 0.5f);
          table_memory f = table_of(both, threads);
          const class_counts found = counts_of(both, f.bytes(), 0);
          for (std::int32_t k = 0; k < 4; ++k) EXPECT_EQ(found.total(k), sets[k]) << k;
          EXPECT_TRUE(std::equal(set_of_block.begin(), set_of_block.end(), found.counts));
        }
        const auto heavier = weight_map(weights, size);
        table_memory w = table_of(heavier, threads);
        const class_counts weighed = counts_of(heavier, w.bytes(), 0);
        EXPECT_EQ(weighed.total(0), weight);
        EXPECT_TRUE(std::equal(weight_of_block.begin(), weight_of_block.end(), weighed.counts));
      }
    }
  }
}

TEST(class_counts, tell_foreground_background_and_voxels_left_out) {
  const grid g = volume(1, 2, 4);
  const std::vector<std::int16_t> labels{0, 1, 0, -1, 0, 0, 0, 3, /* second channel */ 0, 0, 2, 0, 0, 0, 0, 0};
  const float inf = INFINITY, nan = NAN;
  const std::vector<float> image{5, 5, 5, 5, -5, nan, inf, nan};
  const auto seg = contiguous<const std::int16_t>(labels.data(), g, 2);
  const auto ct = contiguous<const float>(image.data(), g);
  const auto map = foreground_background(seg, ct, 0.0f);
  table_memory m = table_of(map);
  const class_counts c = counts_of(map, m.bytes(), 0);
  EXPECT_EQ(c.total(1), 3u);        // 1, 2 of the second channel, 3
  EXPECT_EQ(c.total(0), 2u);        // voxels 0 and 3
  EXPECT_EQ(c.unclassified(), 1u);  // -5
  EXPECT_EQ(c.nonfinite(), 2u);     // NaN and infinity where nothing is foreground
  const auto without = foreground_background(seg);
  table_memory n = table_of(without);
  EXPECT_EQ(counts_of(without, n.bytes(), 0).total(0), 5u);
}

TEST(class_counts, are_those_of_single_voxels_in_long_rows) {
  const grid g = volume(3, 5, 150);
  std::mt19937 random(12);
  std::vector<std::int16_t> labels(2250, 0);
  std::vector<float> image(2250), apart(4500, 1e9f);
  for (std::size_t i = 0; i < 2250; ++i) {
    if (i % 150 > 60 && i % 150 < 140) labels[i] = static_cast<std::int16_t>(i / 450 - 2);
    if (random() % 19 == 0) labels[i] = static_cast<std::int16_t>(static_cast<int>(random() % 7) - 1);
    const auto kind = random() % 9;
    image[i] = kind == 0 ? NAN : kind == 1 ? -INFINITY : kind == 2 ? INFINITY : static_cast<float>(kind) - 5.0f;
    apart[2 * i] = image[i];
  }
  std::uint64_t expected[4] = {}, declared[4] = {};
  for (std::size_t i = 0; i < 2250; ++i) {
    ++expected[labels[i] > 0 ? 1 : !std::isfinite(image[i]) ? 3 : image[i] > 0 ? 0 : 2];
    ++declared[labels[i] < 0 || labels[i] > 2 ? 3 : labels[i]];
  }
  const auto seg = contiguous<const std::int16_t>(labels.data(), g);
  const auto ct = contiguous<const float>(image.data(), g);
  const view<const float> spread{apart.data(), g, {1500, 300, 2}, 1, 0};
  for (const auto& map : {foreground_background(seg, ct), foreground_background(seg, spread)}) {
    table_memory m = table_of(map);
    const class_counts c = counts_of(map, m.bytes(), 0);
    for (std::int32_t k = 0; k < 4; ++k) EXPECT_EQ(c.totals[k], expected[k]) << k;
    EXPECT_GT(c.nonfinite(), 0u);
  }
  const auto map = label_classes(seg, 3);
  table_memory m = table_of(map);
  const class_counts c = counts_of(map, m.bytes(), 0);
  for (std::int32_t k = 0; k < 4; ++k) EXPECT_EQ(c.totals[k], declared[k]) << k;
}

}  // namespace
