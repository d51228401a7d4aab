// SPDX-License-Identifier: Apache-2.0
// A feed on a device: pinned memory, a stream for copies, and the bits of whole volumes on the CPU.
#include "suture/feed/feed.cuh"

#include <gtest/gtest.h>

#include "support/expect_says.hpp"
#include "support/feed_cohort.hpp"

namespace {

using namespace suture;
using support::feed_cohort;
using support::feed_digests;

// Outputs that were copied back, as views of the host.
template <class T>
std::vector<view<T>> downloaded(const std::vector<view<T>>& from, std::vector<T>& memory, cudaStream_t stream) {
  const auto voxels = static_cast<std::size_t>(from[0].grid.voxels());
  memory.resize(voxels * from.size());
  check_cuda(cudaMemcpyAsync(memory.data(), from[0].data, memory.size() * sizeof(T), cudaMemcpyDeviceToHost, stream),
             "copy");
  check_cuda(cudaStreamSynchronize(stream), "copy");
  std::vector<view<T>> to = from;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].data = memory.data() + i * voxels;
  return to;
}

TEST(Feed, GivesTheBitsOfWholeVolumes) {
  const feed_cohort cohort;
  const feed_digests expected = support::of_whole_volumes(cohort, 4);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (const int depth : {1, 3}) {
    feed fed(cuda{stream}, cohort.plans(4), {.depth = depth, .threads = 2}, image_source(cohort.scans),
             label_source(cohort.maps));
    feed_digests got;
    std::vector<suture::half> images;
    std::vector<std::uint8_t> maps;
    while (const auto* batch = fed.next())
      got.add(batch->step, downloaded(batch->outputs<0>(), images, stream),
              downloaded(batch->outputs<1>(), maps, stream));
    EXPECT_EQ(got.list, expected.list) << "depth " << depth;
    const feed_statistics s = fed.statistics();
    EXPECT_EQ(s.batches, 4u);
    EXPECT_GE(s.waited_share(), 0);
    EXPECT_LE(s.waited_share(), 1);
    for (const feed_times& t : fed.times()) {
      EXPECT_LE(t.copy_begin, t.copy_end);
      EXPECT_LE(t.run_begin, t.run_end);
      EXPECT_LE(t.run_end, t.released);
    }
  }
  check_cuda(cudaStreamDestroy(stream), "stream");
}

TEST(Feed, GrowsAndEndsWhileItIsAtWork) {
  const feed_cohort cohort;
  for (const std::size_t taken : {0u, 1u, 3u}) {
    feed fed(cuda{}, cohort.plans(100), {.most_bytes = 400000}, image_source(cohort.scans), label_source(cohort.maps));
    for (std::size_t i = 0; i < taken; ++i) EXPECT_NE(fed.next(), nullptr);
  }
  EXPECT_SAYS(feed(cuda{}, cohort.plans(1), {.most_bytes = 9}, image_source(cohort.scans)).next(),
              "most_bytes: expected");
  std::byte space[256];
  EXPECT_SAYS(feed(cuda{nullptr, space}, cohort.plans(1), {}, image_source(cohort.scans)), "workspace: expected none");
}

}  // namespace
