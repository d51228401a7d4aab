// SPDX-License-Identifier: Apache-2.0
// Cases on the CPU, for their digests alone.
#pragma once

#include "digest/host_backend.hpp"
#include "verdict.hpp"

namespace fuzz {

template <class Case>
struct case_check {
  std::uint64_t seed, number;
  case_check(std::uint64_t s, std::uint64_t n) : seed(s), number(n) {}
  verdict run() const {
    digest_test::host_backend backend;
    return digest_alone<Case>(seed, number, backend, [](const auto& plan, const auto&... bindings) {
      suture::run(suture::cpu{.threads = 2}, plan, bindings...);
    });
  }
};

}  // namespace fuzz
