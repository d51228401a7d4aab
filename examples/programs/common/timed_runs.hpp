// SPDX-License-Identifier: Apache-2.0
// Runs one after the other with what they keep between them, and what they took.
#pragma once

#include <memory>
#include <new>

#include "planned_patch.hpp"
#include "suture/suture.hpp"

namespace suture::examples {

struct run_statistics {
  double seconds = 0;  // of the runs alone, without reading, planning and copying
  std::size_t workspace_bytes = 0;
  int stages = 0;
  int launches = 0;  // kernels per batch; 0 on the CPU
};

// On the CPU.
class cpu_runs {
public:
  explicit cpu_runs(int threads) : threads_(threads) {}

  template <class Plan, class... Bindings>
  void run(run_statistics& spent, const Plan& plan, const Bindings&... bound) {
    const std::size_t bytes = workspace_bytes(plan, bound...);
    if (bytes > spent.workspace_bytes) {
      workspace_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
      spent.workspace_bytes = bytes;
    }
    spent.seconds += seconds_of([&] {
      suture::run(cpu{threads_, {workspace_.get(), spent.workspace_bytes}}, plan, bound...);
    });
    spent.stages = plan.stages();
  }

private:
  static constexpr std::align_val_t alignment{256};
  struct aligned_delete {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };

  int threads_;
  std::unique_ptr<std::byte, aligned_delete> workspace_;
};

}  // namespace suture::examples
