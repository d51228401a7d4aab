// SPDX-License-Identifier: Apache-2.0
// Runs in a process that fork() made, as the workers of PyTorch's DataLoader are.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <suture/suture.hpp>
#include <thread>

namespace {

using namespace suture;

// The digest of a few patches, by `threads` threads, and of a fit to their source.
std::uint64_t made_with(int threads) {
  const grid g{.extents = {24, 64, 64}};
  std::vector<std::int16_t> voxels(static_cast<std::size_t>(g.voxels()));
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<std::int16_t>(i * 2654435761u >> 20);
  const std::vector<view<const std::int16_t>> in(3, contiguous<const std::int16_t>(voxels.data(), g));
  const std::vector<std::uint64_t> ids{1, 2, 3};
  const auto planned = plan(random_affine{.rotate_deg = 15} | gaussian_noise{}, in, {.seed = 5, .sample_ids = ids});
  std::vector<float> out(3 * voxels.size());
  const auto outs = batch_views(out.data(), planned.output_grids());
  run(cpu{.threads = threads}, planned, image(in, outs));
  std::uint64_t set = 0;
  for (std::size_t i = 0; i < 3; ++i) set = combine_digest(set, i, digest(outs[i]));
  std::vector<moments> fitted(3);
  fit(cpu{.threads = threads}, fit_moments{}, in, everything{}, fitted);
  return combine_digest(set, 3, bit_cast<std::uint64_t>(fitted[2].mean));
}

// The exit status of a child that does this, -1 if it has not ended after 30 seconds.
template <class Work>
int status_of_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

TEST(Fork, AChildOfAProcessWithThreadsRunsWithOne) {
#if !defined(_OPENMP)
  GTEST_SKIP() << "compiled without OpenMP";
#else
  // One that has none yet loses none.
  EXPECT_EQ(status_of_child([] { return detail::thread_count(4); }), 4);

  int most = 0;
#pragma omp parallel for num_threads(4) reduction(max : most)
  for (int i = 0; i < 4; ++i) most = std::max(most, omp_get_num_threads());
  ASSERT_EQ(most, 4);
  const std::uint64_t expected = made_with(4);
  EXPECT_EQ(status_of_child([] { return detail::thread_count(4); }), 1);
  EXPECT_EQ(status_of_child([&] { return made_with(4) == expected ? 0 : 1; }), 0);
  EXPECT_EQ(status_of_child([&] { return made_with(0) == expected ? 0 : 1; }), 0);
  // A child of the child, and the parent goes on as it was.
  EXPECT_EQ(status_of_child([&] { return status_of_child([&] { return made_with(4) == expected ? 0 : 1; }); }), 0);
  EXPECT_EQ(detail::thread_count(4), 4);
  EXPECT_EQ(made_with(4), expected);
#endif
}

}  // namespace
