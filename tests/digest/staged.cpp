// SPDX-License-Identifier: Apache-2.0
// Prints the digests of every pipeline of several stages, computed on the CPU.
#include "host.hpp"

#include "staged_recipes.hpp"

int main() {
  const digest_test::cases data;
  digest_test::for_each_staged_recipe(
      [&](const char* name, const auto& pipeline) { digest_test::host_digest(data, name, pipeline).print(); });
}
