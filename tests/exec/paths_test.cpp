// SPDX-License-Identifier: Apache-2.0
// The paths of the CPU executor beside the lone voxel.
#include "exec/paths.hpp"
#include "support/voxel_walk.hpp"

namespace {

struct cpu_by {
  template <class T>
  class buffer {
  public:
    explicit buffer(std::vector<T> values) : values_(std::move(values)) {}
    T* data() { return values_.data(); }
    const std::vector<T>& values() const { return values_; }

  private:
    std::vector<T> values_;
  };
  template <class Paths, class Plan, class... Bindings>
  static void run_by(const Plan& plan, const Bindings&... bindings) {
    suture::detail::run_by<Paths>(suture::cpu{}, plan, bindings...);
  }
};

TEST(Paths, GiveTheBitsOfLoneVoxels) {
  paths_test::expect_the_same_bits_of_all<cpu_by, support::voxel_walk, suture::detail::cpu_paths>();
}

}  // namespace
