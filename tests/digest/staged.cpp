// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every pipeline of several stages, computed on the CPU.
#include "host.hpp"

#include "staged_recipes.hpp"

int main() {
  const digest_test::cases data;
  bool same = true;
  digest_test::for_each_staged_recipe([&](const char* name, const auto& pipeline) {
    const auto digest_of = [&](const auto& cases) { return digest_test::host_digest(cases, name, pipeline); };
    same = digest_test::print(data, digest_of) && same;
  });
  return same ? 0 : 1;
}
