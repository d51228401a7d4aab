// SPDX-License-Identifier: Apache-2.0
// Points and boxes on a device: the results of the host bit for bit, lists of every length, values that cannot be
// moved, graphs, and errors before launch.
#include <gtest/gtest.h>
#include <suture/points/points.cuh>

#include <cstring>
#include <limits>

#include "support/device_array.cuh"
#include "support/expect_says.hpp"
#include "support/launches.cuh"
#include "support/move_lists.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using support::device_array;

const auto bent = random_affine{.rotate_deg = 25, .scale = {.8f, 1.3f}} |
                  random_elastic{.control_spacing_mm = 9, .max_displacement_mm = 3, .probability = .7f} |
                  random_crop{.size = {1, 20, 22}} | random_flip{};

// Forty-nine samples, more than the arguments of one kernel hold; lists of every length that a warp may begin or end
// in.
struct batch {
  std::vector<grid> grids;
  std::vector<std::uint64_t> ids;
  std::vector<std::int64_t> offsets{2};  // two values are in no list, nor are the last three
  std::vector<point3> points;
  std::vector<box> boxes;

  // f(sample, place) for every value in a list whose result is valid.
  template <class Result, class F>
  void each_moved(const std::vector<Result>& results, const F& f) const {
    for (std::size_t s = 0; s < grids.size(); ++s)
      for (auto i = static_cast<std::size_t>(offsets[s]); i < static_cast<std::size_t>(offsets[s + 1]); ++i)
        if (results[i].valid) f(s, i);
  }

  batch() {
    const std::int64_t lengths[]{0, 1, 15, 0, 16, 17, 127, 3};
    for (std::uint64_t i = 0; i < 49; ++i) {
      grids.push_back({.extents = i % 5 == 0 ? extent3{1, 31, 44} : extent3{14, 31, 44}, .spacing = {2, 1, 0.75}});
      ids.push_back(1000 + 17 * i);
      offsets.push_back(offsets.back() + (i < 8 ? lengths[i] : static_cast<std::int64_t>(i % 2)));
    }
    for (std::int64_t i = 0; i < offsets.back() + 3; ++i) {
      point3 p{}, size{};
      for (int k = 0; k < 3; ++k) {
        const double u = static_cast<double>(mix64(static_cast<std::uint64_t>(3 * i + k)) >> 11) * 0x1p-53;
        p[k] = 60 * u - 10;  // some outside the source
        size[k] = 1 + 9 * u;
      }
      points.push_back(p);
      boxes.push_back({p, {p[0] + size[0], p[1] + size[1], p[2] + size[2]}});
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    points[5][1] = nan;
    points[9][0] = 1e300;
    boxes[5].high[2] = std::numeric_limits<double>::infinity();
    boxes[9].high[1] = boxes[9].low[1];
    boxes[11] = {{500, 500, 500}, {510, 510, 510}};  // far outside
    boxes[20] = {{0, 0, 0}, {14, 31, 44}};
  }
};

void expect_same(const located_point& a, const located_point& b, std::size_t i) {
  EXPECT_EQ(std::memcmp(&a.point, &b.point, sizeof a.point), 0) << i << ": " << a.point << " and " << b.point;
  EXPECT_EQ(std::memcmp(&a.residual, &b.residual, sizeof a.residual), 0) << i;
  EXPECT_EQ(a.converged, b.converged) << i;
  EXPECT_EQ(a.valid, b.valid) << i;
}
void expect_same(const source_point& a, const source_point& b, std::size_t i) {
  EXPECT_EQ(std::memcmp(&a.point, &b.point, sizeof a.point), 0) << i << ": " << a.point << " and " << b.point;
  EXPECT_EQ(a.valid, b.valid) << i;
}
void expect_same(const box_result& a, const box_result& b, std::size_t i) {
  EXPECT_EQ(std::memcmp(&a.clipped, &b.clipped, sizeof a.clipped), 0) << i << ": " << a.clipped.low << b.clipped.low;
  EXPECT_EQ(std::memcmp(&a.unclipped, &b.unclipped, sizeof a.unclipped), 0) << i;
  EXPECT_EQ(std::memcmp(&a.visible, &b.visible, sizeof a.visible), 0) << i;
  EXPECT_EQ(a.converged, b.converged) << i;
  EXPECT_EQ(a.valid, b.valid) << i;
}

void expect_same(const box_in_source& a, const box_in_source& b, std::size_t i) {
  EXPECT_EQ(std::memcmp(&a.envelope, &b.envelope, sizeof a.envelope), 0)
      << i << ": " << a.envelope.low << " and " << b.envelope.low;
  EXPECT_EQ(a.valid, b.valid) << i;
}

// The lists of a batch by both executors.
template <class Result, class Plan, class T>
std::vector<Result> moved_by_both(const Plan& plan, const std::vector<T>& values,
                                  const std::vector<std::int64_t>& offsets) {
  std::vector<Result> expected(values.size());
  support::move_lists(cpu{}, plan, ragged<T>{values, offsets}, std::span(expected));
  const device_array<T> on_device(values);
  const device_array<std::int64_t> starts(offsets);
  const device_array<Result> results(values.size());
  const cuda_workspace workspace(workspace_bytes(plan));
  support::move_lists(cuda{.workspace = workspace}, plan, ragged<T>{on_device.span(), starts.span()}, results.span());
  const std::vector<Result> found = results.values();
  for (std::size_t i = 0; i < values.size(); ++i) expect_same(found[i], expected[i], i);
  return expected;
}

TEST(points_on_a_device, are_those_of_the_host) {
  const batch data;
  const auto plan = suture::plan(bent, data.grids, {.seed = 6, .sample_ids = data.ids});
  const auto results = moved_by_both<located_point>(plan, data.points, data.offsets);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool valid = i >= 2 && i + 3 < results.size() && i != 5 && i != 9;
    EXPECT_EQ(results[i].valid, valid) << i;
    EXPECT_EQ(results[i].converged, valid) << i;
    if (!valid) EXPECT_EQ(results[i].point, (point3{0, 0, 0})) << i;
  }
  data.each_moved(results, [&](std::size_t sample, std::size_t i) {
    expect_same(results[i], to_output(plan, sample, data.points[i]), i);
  });
}

TEST(points_on_a_device, go_back_to_the_source) {
  const batch data;
  const auto plan = suture::plan(bent, data.grids, {.seed = 6, .sample_ids = data.ids});
  const auto results = moved_by_both<source_point>(plan, data.points, data.offsets);
  std::size_t moved = 0;
  data.each_moved(results, [&](std::size_t sample, std::size_t i) {
    const point3 one = to_source(plan, sample, data.points[i]);
    EXPECT_EQ(std::memcmp(&results[i].point, &one, sizeof one), 0) << i;
    ++moved;
  });
  EXPECT_EQ(moved, data.points.size() - 7);  // five in no list, two no positions
  for (const std::size_t i : {0, 1, 5, 9}) {
    EXPECT_FALSE(results[i].valid) << i;
    EXPECT_EQ(results[i].point, (point3{0, 0, 0})) << i;
  }
  // There and back: where a point of the source lies in the output, that point is read.
  const auto there = moved_by_both<located_point>(plan, data.points, data.offsets);
  std::vector<point3> outputs;
  for (const located_point& p : there) outputs.push_back(p.point);
  const auto back = moved_by_both<source_point>(plan, outputs, data.offsets);
  for (std::size_t i = 0; i < back.size(); ++i)
    for (int k = 0; there[i].valid && k < 3; ++k) EXPECT_NEAR(back[i].point[k], data.points[i][k], 1e-5) << i;
}

// A map of no inverse, as of a projection, is one way.
struct project {
  static constexpr std::string_view name = "project";
  geometry_step step(const grid& input, const site&) const {
    geometry_step result{input, affine_map{}};
    result.pull.linear[1][1] = 0;
    return result;
  }
};

TEST(points_on_a_device, go_back_by_a_map_that_cannot_be_inverted) {
  const batch data;
  const auto plan = suture::plan(project{}, data.grids);
  const auto results = moved_by_both<source_point>(plan, data.points, data.offsets);
  EXPECT_EQ(results[12].point, (point3{data.points[12][0], 0, data.points[12][2]}));
  const auto boxes = moved_by_both<box_in_source>(plan, data.boxes, data.offsets);
  EXPECT_TRUE(boxes[12].valid);
  EXPECT_EQ(boxes[12].envelope.low[2], data.boxes[12].low[2]);
  EXPECT_EQ(boxes[12].envelope.low[1], boxes[12].envelope.high[1]);  // of no thickness where it is projected
  const cuda_workspace workspace(workspace_bytes(plan));
  EXPECT_SAYS(load_maps(cuda{.workspace = workspace}, plan), "load_maps: sample 0: the map from output to source");
}

TEST(boxes_on_a_device, are_those_of_the_host) {
  const batch data;
  const auto plan = suture::plan(bent, data.grids, {.seed = 6, .sample_ids = data.ids});
  const auto results = moved_by_both<box_result>(plan, data.boxes, data.offsets);
  EXPECT_FALSE(results[5].valid);
  EXPECT_FALSE(results[9].valid);
  EXPECT_TRUE(results[11].valid);
  EXPECT_EQ(results[11].visible, 0);
  EXPECT_GT(results[20].visible, 0);
  data.each_moved(results, [&](std::size_t sample, std::size_t i) {
    expect_same(results[i], to_output(plan, sample, data.boxes[i]), i);
  });
}

TEST(boxes_on_a_device, go_back_to_the_source) {
  const batch data;
  const auto plan = suture::plan(bent, data.grids, {.seed = 6, .sample_ids = data.ids});
  const auto results = moved_by_both<box_in_source>(plan, data.boxes, data.offsets);
  std::size_t moved = 0;
  data.each_moved(results, [&](std::size_t sample, std::size_t i) {
    expect_same(results[i], {to_source(plan, sample, data.boxes[i])}, i);
    ++moved;
  });
  EXPECT_EQ(moved, data.boxes.size() - 7);  // five in no list, two no boxes
  for (const std::size_t i : {0, 1, 5, 9}) {
    EXPECT_FALSE(results[i].valid) << i;
    EXPECT_EQ(results[i].envelope.high, (point3{0, 0, 0})) << i;
  }
}

TEST(points_on_a_device, say_where_a_map_folds) {
  const std::vector<grid> grids{{.extents = {24, 24, 24}}};
  const std::uint64_t id = 1;
  const auto plan = suture::plan(
      random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 40, .locked_borders = 0, .allow_folding = true},
      grids, {.seed = 1, .sample_ids = {&id, 1}});
  const batch data;
  const auto results = moved_by_both<located_point>(plan, data.points, {20, 60});
  int diverged = 0;
  for (std::size_t i = 20; i < 60; ++i) diverged += results[i].converged ? 0 : 1;
  EXPECT_GT(diverged, 4);
}

TEST(points_on_a_device, serve_every_batch_of_a_graph) {
  const batch data;
  const device_array<point3> points(data.points);
  const device_array<std::int64_t> offsets(data.offsets);
  const device_array<located_point> results(data.points.size());
  const device_array<source_point> sources(data.points.size());
  const ragged<point3> lists{points.span(), offsets.span()};
  const device_array<box> boxes(data.boxes);
  const device_array<box_in_source> source_boxes(data.boxes.size());
  const ragged<box> box_lists{boxes.span(), offsets.span()};
  const auto planned_for = [&](std::uint32_t epoch) {
    return suture::plan(bent, data.grids, {.seed = 6, .epoch = epoch, .sample_ids = data.ids});
  };
  auto plan = planned_for(0);
  const cuda_workspace workspace(workspace_bytes(plan));
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream), "test");
  const cuda exec{.stream = stream, .workspace = workspace};
  EXPECT_EQ(support::launches([&](cudaStream_t s) {
              to_output_loaded({.stream = s, .workspace = workspace}, plan, lists, results.span());
            }),
            1u);
  EXPECT_EQ(support::launches([&](cudaStream_t s) {
              to_source_loaded({.stream = s, .workspace = workspace}, plan, lists, sources.span());
            }),
            1u);
  EXPECT_EQ(support::launches([&](cudaStream_t s) {
              to_source_loaded({.stream = s, .workspace = workspace}, plan, box_lists, source_boxes.span());
            }),
            1u);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  to_output_loaded(exec, plan, lists, results.span());  // once; to_source_loaded likewise
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&replay, graph, 0), "test");
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    plan = planned_for(epoch);
    load_maps(exec, plan);  // for each batch
    check_cuda(cudaGraphLaunch(replay, stream), "launch");
    check_cuda(cudaStreamSynchronize(stream), "test");
    std::vector<located_point> expected(data.points.size());
    to_output(cpu{.threads = 1}, plan, ragged<point3>{data.points, data.offsets}, std::span(expected));
    const auto found = results.values();
    for (std::size_t i = 0; i < expected.size(); ++i) expect_same(found[i], expected[i], i);
    to_source_loaded(exec, plan, lists, sources.span());  // by the same maps
    to_source_loaded(exec, plan, box_lists, source_boxes.span());
    check_cuda(cudaStreamSynchronize(stream), "test");
    std::vector<source_point> read(data.points.size());
    to_source(cpu{.threads = 3}, plan, ragged<point3>{data.points, data.offsets}, std::span(read));
    const auto found_sources = sources.values();
    for (std::size_t i = 0; i < read.size(); ++i) expect_same(found_sources[i], read[i], i);
    std::vector<box_in_source> covered(data.boxes.size());
    to_source(cpu{.threads = 3}, plan, ragged<box>{data.boxes, data.offsets}, std::span(covered));
    const auto found_boxes = source_boxes.values();
    for (std::size_t i = 0; i < covered.size(); ++i) expect_same(found_boxes[i], covered[i], i);
  }
  check_cuda(cudaGraphExecDestroy(replay), "test");
  check_cuda(cudaGraphDestroy(graph), "test");
  check_cuda(cudaStreamDestroy(stream), "test");
}

// A graph may be launched too early.
TEST(points_on_a_device, are_not_valid_before_maps_are_loaded) {
  const batch data;
  const device_array<point3> points(data.points);
  const device_array<box> boxes(data.boxes);
  const device_array<std::int64_t> offsets(data.offsets);
  const device_array<located_point> moved(data.points.size());
  const device_array<box_result> moved_boxes(data.boxes.size());
  const auto plan = suture::plan(bent, data.grids, {.seed = 6, .sample_ids = data.ids});
  const cuda_workspace workspace(workspace_bytes(plan));
  const cuda exec{.workspace = workspace};
  for (const int garbage : {0, 0x5a, 0xff}) {
    if (garbage != 0) check_cuda(cudaMemset(workspace.span().data(), garbage, workspace.span().size()), "garbage");
    to_output_loaded(exec, plan, ragged<point3>{points.span(), offsets.span()}, moved.span());
    to_output_loaded(exec, plan, ragged<box>{boxes.span(), offsets.span()}, moved_boxes.span());
    check_cuda(cudaDeviceSynchronize(), "test");
    for (const located_point& p : moved.values()) ASSERT_FALSE(p.valid);
    for (const box_result& b : moved_boxes.values()) ASSERT_FALSE(b.valid);
  }
}

TEST(points_on_a_device, are_refused_before_launch) {
  const batch data;
  const auto plan = suture::plan(bent, data.grids, {.seed = 6, .sample_ids = data.ids});
  const cuda_workspace workspace(workspace_bytes(plan));
  std::vector<located_point> results(4);
  const std::vector<point3> four(4);
  const std::span<const std::int64_t> offsets = data.offsets;
  const auto move = [&](std::span<std::byte> memory, std::span<const std::int64_t> starts, std::size_t room) {
    to_output(cuda{.workspace = memory}, plan, ragged<point3>{four, starts}, std::span(results).first(room));
  };
  EXPECT_SAYS(move(workspace, offsets.first(49), 4), "49 offsets for 49 samples");
  EXPECT_SAYS(move(workspace, offsets, 3), "4 given, room for 3");
  EXPECT_SAYS(move({}, offsets, 4), "to_output: workspace: none was given, ");
  std::vector<source_point> sources(4);
  const auto back = [&](std::span<std::byte> memory, std::span<const std::int64_t> starts, std::size_t room) {
    to_source(cuda{.workspace = memory}, plan, ragged<point3>{four, starts}, std::span(sources).first(room));
  };
  EXPECT_SAYS(back(workspace, offsets.first(49), 4), "to_source: 49 offsets for 49 samples");
  EXPECT_SAYS(back(workspace, offsets, 3), "to_source: 4 given, room for 3");
  EXPECT_SAYS(back({}, offsets, 4), "to_source: workspace: none was given, ");
  std::vector<box_in_source> source_boxes(3);
  EXPECT_SAYS(to_source(cuda{.workspace = workspace}, plan, ragged<box>{data.boxes, offsets}, std::span(source_boxes)),
              "room for 3");
  // No list at all is no work.
  const std::vector<std::int64_t> none(50, 0);
  to_output(cuda{.workspace = workspace}, plan, ragged<point3>{{}, none}, {});
  to_source(cuda{.workspace = workspace}, plan, ragged<point3>{{}, none}, {});
  // Offsets on the host are looked at.
  std::vector<std::int64_t> wrong(50, 0);
  wrong[3] = 5;
  EXPECT_SAYS(to_output(cpu{}, plan, ragged<point3>({four, wrong}), std::span(results)), "offsets 0 and 5");
  EXPECT_SAYS(to_source(cpu{}, plan, ragged<point3>({four, wrong}), std::span(sources)),
              "to_source: sample 2: offsets 0 and 5");
}

}  // namespace
