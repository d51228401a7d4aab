// SPDX-License-Identifier: Apache-2.0
// Cases on a device, for their digests alone.
#pragma once

#include <suture/suture.cuh>

#include "digest/device_backend.cuh"
#include "verdict.hpp"

namespace fuzz {

template <class Case>
struct case_check {
  std::uint64_t seed, number;
  case_check(std::uint64_t s, std::uint64_t n) : seed(s), number(n) {}
  verdict run() const {
    digest_test::device_backend backend;
    return digest_alone<Case>(seed, number, backend, [&](const auto& plan, const auto&... bindings) {
      suture::run(backend.exec(suture::workspace_bytes(plan, bindings...)), plan, bindings...);
      suture::check_cuda(cudaDeviceSynchronize(), "run");
    });
  }
};

}  // namespace fuzz
