// SPDX-License-Identifier: Apache-2.0
// Memory that the host cannot read, as a device's is, is refused by the CPU and named.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <suture/suture.hpp>

#include "support/expect_says.hpp"

namespace {

using namespace suture;

constexpr std::size_t room = 1 << 16;

// Addresses that are taken, and that nobody may read.
struct unreadable {
  void* memory = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ~unreadable() { munmap(memory, room); }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory);
  }
};

TEST(Unreadable, MemoryIsRefusedByTheCpu) {
#if !defined(__linux__)
  GTEST_SKIP() << "asked of the kernel on Linux alone";
#else
  const unreadable far;
  const grid g{.extents = {4, 6, 8}};
  std::vector<float> near(192), out(192);
  const auto in = contiguous<const float>(near.data(), g), far_in = contiguous<const float>(far.as<float>(), g);
  const auto to = contiguous(out.data(), g), far_to = contiguous(far.as<float>(), g);
  const auto p = plan(flip{}, in);
  EXPECT_SAYS(run(cpu{}, p, image(far_in, to)), "image: sample 0: input: pointer ");
  EXPECT_SAYS(run(cpu{}, p, image(far_in, to)), " cannot be read on the host; is it device memory?");
  EXPECT_SAYS(run(cpu{}, p, image(in, far_to)), "image: sample 0: output: pointer ");
  run(cpu{}, p, image(in, to));

  std::vector<moments> results(1);
  const std::span<moments> far_results(far.as<moments>(), 1);
  EXPECT_SAYS(fit(cpu{}, fit_moments{}, far_in, everything{}, results), "fit_moments: sample 0: image: pointer ");
  EXPECT_SAYS(fit(cpu{}, fit_moments{}, in, everything{}, far_results), "fit_moments: results: pointer ");
  EXPECT_SAYS(run(cpu{}, plan(z_score{.fitted = far_results}, in), image(in, to)), "z_score: fitted results: pointer ");

  std::vector<std::uint8_t> mask(192);
  const auto far_mask = contiguous(far.as<std::uint8_t>(), g), near_mask = contiguous(mask.data(), g);
  EXPECT_SAYS(binary_erosion(cpu{}, far_mask, near_mask), "binary_erosion: sample 0: input: pointer ");
  EXPECT_SAYS(binary_erosion(cpu{}, near_mask, far_mask), "binary_erosion: sample 0: output: pointer ");
  const auto classes = label_classes(far_mask, 2);
  std::vector<std::byte> counts(class_counts_bytes(classes));
  EXPECT_SAYS(count_classes(cpu{}, classes, counts), "count_classes: sample 0: view: pointer ");
#endif
}

}  // namespace
