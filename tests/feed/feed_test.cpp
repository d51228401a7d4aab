// SPDX-License-Identifier: Apache-2.0
// A feed on the CPU: the bits of whole volumes for any number of threads and any depth, batches in order, errors of
// readers and plans in next(), memory within its settings.
#include "suture/feed/feed.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "support/expect_says.hpp"
#include "support/feed_cohort.hpp"

namespace {

using namespace suture;
using support::feed_cohort;
using support::feed_digests;
using support::of_whole_volumes;

TEST(feed, gives_the_bits_of_whole_volumes_for_any_threads_and_depth) {
  const feed_cohort cohort;
  const feed_digests expected = of_whole_volumes(cohort, 5);
  for (const int depth : {1, 2, 3, 8})
    for (const int threads : {1, 2, 5}) {
      feed fed(cpu{.threads = 1}, cohort.plans(5), {.depth = depth, .threads = threads}, image_source(cohort.scans),
               label_source(cohort.maps));
      feed_digests got;
      std::size_t step = 0;
      while (const auto* batch = fed.next()) {
        EXPECT_EQ(batch->step, step++);
        got.add(batch->step, batch->outputs<0>(), batch->outputs<1>());
      }
      EXPECT_EQ(fed.next(), nullptr);
      EXPECT_EQ(got.list, expected.list) << "depth " << depth << ", threads " << threads;
    }
}

TEST(feed, says_what_it_did) {
  const feed_cohort cohort;
  feed fed(cpu{.threads = 1}, cohort.plans(4), {.kept_times = 3}, image_source(cohort.scans),
           label_source(cohort.maps));
  std::size_t bytes = 0;
  while (const auto* batch = fed.next())
    for (std::size_t i = 0; i < batch->plan().size(); ++i)
      bytes += static_cast<std::size_t>(source_box(batch->plan(), i).voxels()) * 3;  // int16 and uint8
  const feed_statistics s = fed.statistics();
  EXPECT_EQ(s.batches, 4u);
  EXPECT_EQ(s.bytes, bytes);
  EXPECT_GE(s.waited_share(), 0);
  EXPECT_LE(s.waited_share(), 1);
  const std::vector<feed_times> times = fed.times();
  ASSERT_EQ(times.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const feed_times& t = times[i];
    EXPECT_EQ(t.step, i + 1);
    EXPECT_LE(t.plan_begin, t.plan_end);
    EXPECT_LE(t.plan_end, t.read_begin);
    EXPECT_LE(t.read_begin, t.read_end);
    EXPECT_LE(t.read_end, t.run_begin);
    EXPECT_LE(t.run_begin, t.run_end);
    EXPECT_LE(t.run_end, t.delivered);
    EXPECT_LE(t.delivered, t.released);
  }
}

TEST(feed, works_ahead_while_the_caller_has_a_batch) {
  const feed_cohort cohort;
  std::atomic<std::size_t> planned = 0;
  const auto plans = [&, made = cohort.plans(9)](std::size_t step) {
    planned = step + 1;
    return made(step);
  };
  feed fed(cpu{.threads = 1}, plans, {.depth = 3}, image_source(cohort.scans), label_source(cohort.maps));
  EXPECT_NE(fed.next(), nullptr);
  for (int i = 0; i < 3000 && planned < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(planned, 3u);  // that of the caller and two more, and none beyond
}

// Fails for one case, and counts.
struct broken_reader {
  using element = std::int16_t;
  const memory_reader<std::int16_t>& good;
  std::size_t broken;
  std::size_t size() const { return good.size(); }
  std::string name(std::size_t index) const { return good.name(index); }
  grid grid_of(std::size_t index) const { return good.grid_of(index); }
  std::int64_t channels(std::size_t index) const { return good.channels(index); }
  void read(std::size_t index, const voxel_box& box, std::int16_t* to) const {
    if (index == broken) throw std::runtime_error("disk is gone");
    good.read(index, box, to);
  }
};

TEST(feed, an_exception_of_a_reader_comes_in_the_place_of_its_batch) {
  const feed_cohort cohort;
  const feed_digests expected = of_whole_volumes(cohort, 4);
  const broken_reader scans{cohort.scans, 2};  // is in the batches 1 and 2
  for (const int threads : {1, 4}) {
    feed fed(cpu{.threads = 1}, cohort.plans(4), {.threads = threads}, image_source(scans), label_source(cohort.maps));
    feed_digests got;
    int refused = 0;
    for (bool more = true; more;) {
      try {
        const auto* batch = fed.next();
        more = batch != nullptr;
        if (more) got.add(batch->step, batch->outputs<0>(), batch->outputs<1>());
      } catch (const error& problem) {
        ++refused;
        expect_parts(problem.what(), {"suture: feed: batch ", ": case case 2: disk is gone"});
      }
    }
    EXPECT_EQ(refused, 2);
    EXPECT_EQ(got.list, (std::vector{expected.list[0], expected.list[3]}));
  }
}

TEST(feed, an_exception_of_a_plan_ends_it) {
  const feed_cohort cohort;
  const auto good = cohort.plans(9);
  const auto plans = [&](std::size_t step) {
    require(step < 2, {"my recipe"}, "no third batch");
    return good(step);
  };
  feed fed(cpu{.threads = 1}, plans, {}, image_source(cohort.scans), label_source(cohort.maps));
  EXPECT_NE(fed.next(), nullptr);
  EXPECT_NE(fed.next(), nullptr);
  EXPECT_SAYS(fed.next(), "my recipe: no third batch");
  EXPECT_EQ(fed.next(), nullptr);
}

TEST(feed, what_does_not_fit_is_refused_in_one_sentence) {
  const feed_cohort cohort;
  const auto of = [&](feed_settings s, auto plans, const auto& scans) {
    return message([&] {
      feed fed(cpu{.threads = 1}, plans, s, image_source(scans), label_source(cohort.maps));
      fed.next();
    });
  };
  const auto good = cohort.plans(1);
  expect_parts(of({.depth = 0}, good, cohort.scans), {"suture: feed: depth: expected 1 to 1024 batches, got 0"});
  expect_parts(of({.threads = 0}, good, cohort.scans), {"suture: feed: threads: expected 1 to 1024, got 0"});
  expect_parts(of({.most_bytes = 1000}, good, cohort.scans),
               {"feed: batch 0: most_bytes: expected at least ", "got 1000. Raise it"});
  const auto fewer = [&](std::size_t step) {
    auto request = good(step);
    request->cases.pop_back();
    return request;
  };
  expect_parts(of({}, fewer, cohort.scans), {"feed: batch 0: cases: expected one for each of the 2 samples"});
  const auto beyond = [&](std::size_t step) {
    auto request = good(step);
    request->cases[1] = 77;
    return request;
  };
  expect_parts(of({}, beyond, cohort.scans), {"feed: batch 0: cases: expected one of the 3 of source 0, got 77"});
  const auto swapped = [&](std::size_t step) {
    auto request = good(step);
    std::swap(request->cases[0], request->cases[1]);
    return request;
  };
  expect_parts(of({}, swapped, cohort.scans),
               {"feed: batch 0: case case ", ": extents: expected ", "Plan with the grids"});
  std::byte space[256];
  EXPECT_SAYS(feed(cpu{.workspace = space}, good, {}, image_source(cohort.scans)), "feed: workspace: expected none");
  EXPECT_SAYS(cohort.scans.read(3, {{0, 0, 0}, {1, 1, 1}}, nullptr),
              "memory_reader: index: expected a case below 3, got 3");
  EXPECT_SAYS(cohort.scans.read(0, {{0, 0, 0}, {1, 999, 1}}, nullptr),
              "memory_reader: case 0: box: expected voxels within");
}

// Memory for little more than one batch: the feed goes on, one batch after the other.
TEST(feed, memory_is_bounded) {
  const feed_cohort cohort;
  const feed_digests expected = of_whole_volumes(cohort, 6);
  const std::string said = message([&] {
    feed fed(cpu{.threads = 1}, cohort.plans(6), {.most_bytes = 1}, image_source(cohort.scans),
             label_source(cohort.maps));
    fed.next();
  });
  const std::size_t of_first = std::stoul(said.substr(said.find("at least ") + 9));
  feed fed(cpu{.threads = 1}, cohort.plans(6), {.depth = 4, .most_bytes = of_first + of_first / 2},
           image_source(cohort.scans), label_source(cohort.maps));
  feed_digests got;
  while (const auto* batch = fed.next()) got.add(batch->step, batch->outputs<0>(), batch->outputs<1>());
  EXPECT_EQ(got.list, expected.list);
  EXPECT_LE(fed.statistics().most_held, of_first + of_first / 2);
  EXPECT_GE(fed.statistics().most_held, of_first);
}

TEST(feed, ends_before_its_batches_are_taken) {
  const feed_cohort cohort;
  for (const std::size_t taken : {0u, 1u, 2u}) {
    feed fed(cpu{.threads = 1}, cohort.plans(100), {.depth = 3}, image_source(cohort.scans), label_source(cohort.maps));
    for (std::size_t i = 0; i < taken; ++i) EXPECT_NE(fed.next(), nullptr);
  }
}

// This is the example of docs/feed-cpp.md.
TEST(feed, is_as_documented) {
  const feed_cohort cohort;
  const auto& scans = cohort.scans;
  const auto& maps = cohort.maps;
  const std::size_t steps = 3;
  const auto cases_of = [](std::size_t at) { return feed_cohort::cases_of(at); };
  const auto ids_of = [](std::size_t at) { return std::vector<std::uint64_t>{2 * at, 2 * at + 1}; };
  std::size_t taken = 0;
  const auto step = [&](const auto& images, const auto& labels_of) { taken += images.size() + labels_of.size(); };
  // [feed]
  const auto train = suture::random_crop{.size = {9, 13, 17}} | suture::cast<suture::half>{};
  using planned = decltype(suture::plan(train, suture::grids(scans, cases_of(0)), {}));
  const auto plans = [&](std::size_t at) -> std::optional<suture::feed_request<planned>> {
    if (at >= steps) return std::nullopt;
    const std::vector<std::size_t> cases = cases_of(at);  // the cases of this batch
    const std::vector<std::uint64_t> ids = ids_of(at);
    return {{cases, suture::plan(train, suture::grids(scans, cases), {.seed = 42, .sample_ids = ids})}};
  };
  suture::feed batches(suture::cpu{.threads = 1}, plans, {.depth = 3, .threads = 2}, suture::image_source(scans),
                       suture::label_source(maps));
  while (const auto* batch = batches.next()) step(batch->outputs<0>(), batch->outputs<1>());
  // [/feed]
  EXPECT_EQ(taken, 4 * steps);
}

// Readers that are chosen when the program runs, one of them in parts.
struct divided {
  using element = std::int16_t;
  const memory_reader<std::int16_t>& whole;
  std::size_t size() const { return whole.size(); }
  std::string name(std::size_t index) const { return whole.name(index); }
  grid grid_of(std::size_t index) const { return whole.grid_of(index); }
  std::int64_t channels(std::size_t index) const { return whole.channels(index); }
  void read(std::size_t index, const voxel_box& box, std::int16_t* to) const { whole.read(index, box, to); }
  std::size_t parts(std::size_t, const voxel_box& box) const { return static_cast<std::size_t>(box.size[0]); }
  void read_part(std::size_t index, const voxel_box& box, std::size_t part, std::int16_t* to) const {
    voxel_box plane = box;
    plane.first[0] += static_cast<std::int64_t>(part);
    plane.size[0] = 1;
    whole.read(index, plane, to + static_cast<std::int64_t>(part) * box.size[1] * box.size[2]);
  }
};

TEST(feed, shares_the_parts_of_a_box_among_threads) {
  const feed_cohort cohort;
  const feed_digests expected = of_whole_volumes(cohort, 3);
  const any_reader<std::int16_t> scans(divided{cohort.scans});
  feed fed(cpu{.threads = 1}, cohort.plans(3), {.threads = 3}, image_source(scans), label_source(cohort.maps));
  feed_digests got;
  while (const auto* batch = fed.next()) got.add(batch->step, batch->outputs<0>(), batch->outputs<1>());
  EXPECT_EQ(got.list, expected.list);
}

}  // namespace
