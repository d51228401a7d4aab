// SPDX-License-Identifier: Apache-2.0
// Prints the digests of converted label maps, computed on the CPU.
#include "labels.hpp"

#include <new>

#include "host_backend.hpp"

namespace digest_test {

struct host_labels : host_backend {
  template <class Plan, class... Bindings>
  void run(const Plan& plan, const Bindings&... bindings) {
    suture::run(cpu{}, plan, bindings...);
  }
  template <class Plan, class Binding, class Out>
  void evaluate(const Plan& plan, const Binding& binding, std::int32_t channels, const std::vector<view<Out>>& out) {
    const std::size_t bytes = workspace_bytes(plan, binding);
    auto* const space = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
    const auto evaluate = prepare(cpu{.workspace = {space, bytes}}, plan, binding);
    for (std::size_t i = 0; i < out.size(); ++i)
      for (std::int64_t v = 0; v < out[i].grid.voxels(); ++v)
        evaluate_voxel(evaluate, static_cast<std::int32_t>(i), out[i].grid.extents, channels, v, out[i].data);
    ::operator delete (space, std::align_val_t{256});
  }
};

}  // namespace digest_test

int main() {
  digest_test::print_labels(digest_test::host_labels{});
  return 0;
}
