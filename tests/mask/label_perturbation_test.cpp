// SPDX-License-Identifier: Apache-2.0
// Disturbed label maps against plain loops over voxels.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

#include "support/expect_says.hpp"
#include "suture/image/digest.hpp"
#include "suture/mask/label_perturbation.hpp"

namespace {

using suture::binary_operation;
using suture::extent3;
using map_type = std::vector<std::int16_t>;

const extent3 sizes[] = {{1, 1, 1}, {1, 15, 17}, {17, 1, 16}, {16, 17, 1}, {9, 12, 66}, {3, 2, 127}, {15, 16, 15}};

// Blobs of labels 1 to 3 among specks, and a few voxels of -1.
map_type blobs(const extent3& n, std::uint64_t seed) {
  map_type v;
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x) {
        const std::uint64_t h = suture::mix64(v.size() + 1000 * seed);
        const int blob = static_cast<int>((z / 5 + y / 6 + x / 7 + static_cast<std::int64_t>(seed)) % 4);
        v.push_back(static_cast<std::int16_t>(h % 9 == 0 ? static_cast<int>(h / 9 % 5) - 1 : blob));
      }
  return v;
}

struct batch {
  std::vector<suture::grid> grids;
  std::vector<map_type> maps;
  std::vector<suture::view<std::int16_t>> views;
  std::vector<std::uint64_t> ids;

  batch() {
    for (const extent3& n : sizes) {
      grids.push_back({.extents = n});
      maps.push_back(blobs(n, maps.size()));
      ids.push_back(100 + 7 * maps.size());
    }
    for (std::size_t i = 0; i < maps.size(); ++i) views.push_back(suture::contiguous(maps[i].data(), grids[i]));
  }
};

// Any (or, eroding, every) voxel of the ball, of those inside the volume.
std::vector<bool> step(const std::vector<bool>& in, const extent3& n, std::int64_t radius, bool erode) {
  std::vector<bool> out(in.size());
  std::size_t i = 0;
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x, ++i) {
        bool found = false;
        for (std::int64_t a = -radius; a <= radius && !found; ++a)
          for (std::int64_t b = -radius; b <= radius && !found; ++b)
            for (std::int64_t c = -radius; c <= radius && !found; ++c) {
              const std::int64_t u = z + a, v = y + b, w = x + c;
              if (a * a + b * b + c * c > radius * radius || u < 0 || v < 0 || w < 0 || u >= n[0] || v >= n[1] ||
                  w >= n[2])
                continue;
              found = in[static_cast<std::size_t>((u * n[1] + v) * n[2] + w)] != erode;
            }
        out[i] = found != erode;
      }
  return out;
}

void change(map_type& map, const extent3& n, std::int16_t label, binary_operation operation, std::int64_t radius) {
  std::vector<bool> bits(map.size());
  for (std::size_t i = 0; i < map.size(); ++i) bits[i] = map[i] == label;
  if (operation == binary_operation::dilation || operation == binary_operation::closing)
    bits = step(bits, n, radius, false);
  if (operation != binary_operation::dilation) bits = step(bits, n, radius, true);
  if (operation == binary_operation::opening) bits = step(bits, n, radius, false);
  for (std::size_t i = 0; i < map.size(); ++i)
    if (bits[i])
      map[i] = label;
    else if (map[i] == label)
      map[i] = 0;
}

// Number of each voxel's component among 26 neighbors, 0 where the label is another.
std::vector<int> components(const map_type& map, const extent3& n, std::int16_t label,
                            std::vector<std::size_t>& sizes_of) {
  std::vector<int> number(map.size(), 0);
  sizes_of.assign(1, 0);
  for (std::size_t first = 0; first < map.size(); ++first) {
    if (map[first] != label || number[first] != 0) continue;
    const int own = static_cast<int>(sizes_of.size());
    sizes_of.push_back(0);
    std::vector<std::size_t> open{first};
    number[first] = own;
    while (!open.empty()) {
      const auto at = static_cast<std::int64_t>(open.back());
      open.pop_back();
      ++sizes_of.back();
      const std::int64_t z = at / (n[1] * n[2]), y = at / n[2] % n[1], x = at % n[2];
      for (std::int64_t u = std::max<std::int64_t>(0, z - 1); u <= std::min(n[0] - 1, z + 1); ++u)
        for (std::int64_t v = std::max<std::int64_t>(0, y - 1); v <= std::min(n[1] - 1, y + 1); ++v)
          for (std::int64_t w = std::max<std::int64_t>(0, x - 1); w <= std::min(n[2] - 1, x + 1); ++w) {
            const auto next = static_cast<std::size_t>((u * n[1] + v) * n[2] + w);
            if (map[next] != label || number[next] != 0) continue;
            number[next] = own;
            open.push_back(next);
          }
    }
  }
  return number;
}

const std::int32_t named[] = {1, 2, 3};

TEST(Disturbed, BinaryOperationsAreThoseOfPlainLoops) {
  std::map<binary_operation, int> seen;
  for (std::uint32_t epoch = 0; epoch < 6; ++epoch) {
    batch b;
    const suture::settings s{.seed = 3, .epoch = epoch, .sample_ids = b.ids};
    const suture::random_binary_operation rule{
        .labels = named, .probability = .8f, .label_probability = .7f, .largest_radius = 4};
    std::vector<map_type> expected = b.maps;
    for (std::size_t i = 0; i < b.maps.size(); ++i)
      for (const auto& drawn : suture::detail::masks::drawn_changes(rule, s, i)) {
        change(expected[i], sizes[i], static_cast<std::int16_t>(drawn.label), drawn.operation, drawn.radius);
        EXPECT_TRUE(drawn.radius >= 1 && drawn.radius <= 4);
        ++seen[drawn.operation];
      }
    suture::disturb_labels(suture::cpu{}, rule, b.views, s);
    for (std::size_t i = 0; i < b.maps.size(); ++i) ASSERT_EQ(b.maps[i], expected[i]) << "sample " << i;
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST(Disturbed, OneSmallComponentGoes) {
  int gone = 0, kept_large = 0;
  for (std::uint32_t epoch = 0; epoch < 12; ++epoch) {
    batch b;
    const suture::settings s{.seed = 4, .epoch = epoch, .sample_ids = b.ids};
    const suture::random_component_removal rule{.labels = named, .probability = .8f, .largest_share = .05};
    const std::vector<map_type> before = b.maps;
    suture::disturb_labels(suture::cpu{}, rule, b.views, s);
    for (std::size_t i = 0; i < b.maps.size(); ++i) {
      const auto drawn = suture::detail::masks::drawn_changes(rule, s, i);
      for (std::int16_t label = -1; label <= 3; ++label) {
        std::vector<std::size_t> sizes_of;
        const std::vector<int> number = components(before[i], sizes[i], label, sizes_of);
        std::vector<std::size_t> lost(sizes_of.size(), 0);
        for (std::size_t v = 0; v < number.size(); ++v)
          if (number[v] != 0 && b.maps[i][v] != label) {
            ASSERT_EQ(b.maps[i][v], 0);
            ++lost[static_cast<std::size_t>(number[v])];
          }
        if (label == 0) continue;
        const auto is_small = [&](std::size_t size) {
          return size > 0 && static_cast<double>(size) < .05 * static_cast<double>(number.size());
        };
        const bool was_drawn = std::any_of(drawn.begin(), drawn.end(), [&](const auto& d) { return d.label == label; });
        const bool any_small = std::any_of(sizes_of.begin(), sizes_of.end(), is_small);
        std::size_t pieces = 0;
        for (std::size_t c = 1; c < lost.size(); ++c) {
          if (lost[c] == 0) continue;
          ++pieces;
          EXPECT_EQ(lost[c], sizes_of[c]) << "a component goes as a whole";
          EXPECT_TRUE(is_small(sizes_of[c]));
        }
        EXPECT_EQ(pieces, was_drawn && any_small ? 1u : 0u);
        gone += static_cast<int>(pieces);
        kept_large += was_drawn && !any_small;
      }
    }
  }
  EXPECT_GT(gone, 30);
  EXPECT_GT(kept_large, 5);
}

TEST(Disturbed, EverySmallComponentIsAsLikely) {
  // Ten specks and one slab that is too large.
  const extent3 n{1, 8, 41};
  map_type original(8 * 41, 0);
  for (std::size_t x = 0; x < 41; ++x) original[x] = original[41 + x] = 1;
  for (std::size_t k = 0; k < 10; ++k) original[5 * 41 + 4 * k + 1] = 1;
  std::array<int, 10> removed{};
  for (std::uint32_t epoch = 0; epoch < 2000; ++epoch) {
    map_type map = original;
    const std::vector<std::uint64_t> id{9};
    suture::disturb_labels(suture::cpu{.threads = 1},
                           suture::random_component_removal{.labels = named, .probability = 1, .label_probability = 1},
                           suture::contiguous(map.data(), suture::grid{.extents = n}),
                           {.seed = 8, .epoch = epoch, .sample_ids = id});
    for (std::size_t k = 0; k < 10; ++k) removed[k] += map[5 * 41 + 4 * k + 1] == 0;
    ASSERT_TRUE(std::equal(map.begin(), map.begin() + 82, original.begin()));
  }
  EXPECT_EQ(std::accumulate(removed.begin(), removed.end(), 0), 2000);
  for (const int count : removed) EXPECT_NEAR(count, 200, 60);  // 4.5 standard deviations
}

TEST(Disturbed, DrawsBelongToSampleAndLabel) {
  batch together;
  const suture::random_binary_operation rule{.labels = named, .probability = 1, .largest_radius = 3};
  suture::disturb_labels(suture::cpu{}, rule, together.views, {.seed = 1, .epoch = 2, .sample_ids = together.ids});
  batch alone;
  for (std::size_t i = alone.views.size(); i-- > 0;)
    suture::disturb_labels(suture::cpu{.threads = 1}, rule, alone.views[i],
                           {.seed = 1, .epoch = 2, .sample_ids = std::span(alone.ids).subspan(i, 1)});
  for (std::size_t i = 0; i < together.maps.size(); ++i) EXPECT_EQ(together.maps[i], alone.maps[i]);
  EXPECT_NE(together.maps, batch().maps);

  const std::int32_t fewer[] = {3, 1};
  int changes = 0, samples = 0;
  for (std::uint32_t epoch = 0; epoch < 1500; ++epoch) {
    const suture::settings s{.seed = 5, .epoch = epoch, .sample_ids = together.ids};
    const auto all = suture::detail::masks::drawn_changes(suture::random_binary_operation{.labels = named}, s, 0);
    const auto some = suture::detail::masks::drawn_changes(suture::random_binary_operation{.labels = fewer}, s, 0);
    for (const auto& d : some)
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& a) {
        return a.label == d.label && a.operation == d.operation && a.radius == d.radius;
      }));
    changes += static_cast<int>(all.size());
    samples += !all.empty();
  }
  EXPECT_NEAR(changes, 1500 * .4 * 3 * .5, 120);
  EXPECT_NEAR(samples, 1500 * .4 * (1 - .125), 90);
}

TEST(Disturbed, NothingInEvaluation) {
  batch b;
  suture::disturb_labels(suture::cpu{}, suture::random_binary_operation{.labels = named, .probability = 1}, b.views,
                         {.evaluation = true});
  suture::disturb_labels(suture::cpu{}, suture::random_component_removal{.labels = named, .probability = 1}, b.views,
                         {.evaluation = true});
  EXPECT_EQ(b.maps, batch().maps);
}

// What the documentation shows.
TEST(Disturbed, OfTheDocumentation) {
  batch b;
  const auto& [grids, memory, coarse, ids] = b;
  const std::uint32_t epoch = 1;
  // [cascade]
  const std::int32_t organs[] = {1, 2, 3};
  const suture::settings draws{.seed = 42, .epoch = epoch, .sample_ids = ids};
  suture::disturb_labels(suture::cpu{}, suture::random_binary_operation{.labels = organs}, coarse, draws);
  suture::disturb_labels(suture::cpu{}, suture::random_component_removal{.labels = organs}, coarse, draws);
  // [/cascade]
  for (const map_type& map : memory)
    for (const std::int16_t label : map) ASSERT_TRUE(label >= -1 && label <= 3);
}

TEST(Disturbed, Errors) {
  batch b;
  const suture::settings s{.seed = 1, .sample_ids = b.ids};
  using binary = suture::random_binary_operation;
  using removal = suture::random_component_removal;
  const auto run = [&](const auto& rule, const suture::settings& with) {
    suture::disturb_labels(suture::cpu{}, rule, b.views, with);
  };
  const std::int32_t zero[] = {0}, twice[] = {1, 2, 1}, wide[] = {40000};
  EXPECT_SAYS(run(binary{.labels = zero}, s), "random_binary_operation: label 0 is 0");
  EXPECT_SAYS(run(binary{.labels = twice}, s), "label 1 is given twice");
  EXPECT_SAYS(run(removal{.labels = wide}, s), "random_component_removal: label 40000");
  EXPECT_SAYS(run(binary{.labels = named, .probability = 1.5f}, s), "probabilities 1.5 and 0.5");
  EXPECT_SAYS(run(binary{.labels = named, .smallest_radius = 0}, s), "radii 0 to 8");
  EXPECT_SAYS(run(binary{.labels = named, .smallest_radius = 9}, s), "radii 9 to 8");
  EXPECT_SAYS(run(binary{.labels = named, .largest_radius = 64}, s), "radii 1 to 64");
  EXPECT_SAYS(run(removal{.labels = named, .largest_share = 2}, s), "largest_share 2");
  EXPECT_SAYS(run(removal{.labels = named}, {}), "0 sample ids for 7 label maps");
  b.views[1] = b.views[4];
  EXPECT_SAYS(run(removal{.labels = named}, s), "overlaps");
}

}  // namespace
