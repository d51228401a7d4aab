// SPDX-License-Identifier: Apache-2.0
// The bytes are stains in a file. Those that are accepted are written and read back as the same, and can be unmixed by.
#include <cmath>

#include "common/stain_json.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace suture::examples;
  const fuzz::memory_file file(data, size);
  fuzz::accepted([&] {
    const suture::stain_reference stains = read_stains(file.path());
    for (int k = 0; k < 2; ++k) {
      fuzz::must_hold(std::isfinite(stains.max_concentration[k]), "an accepted concentration is finite");
      for (int c = 0; c < 3; ++c) fuzz::must_hold(std::isfinite(stains.stains[c][k]), "an accepted stain is finite");
    }
    const auto once = stains_to_json(stains);
    fuzz::must_hold(fuzz::accepted([&] {
                      fuzz::must_hold(stains_to_json(stains_from_json(once)).dump() == once.dump(),
                                      "accepted stains read back as they are written");
                    }),
                    "what is written of accepted stains is accepted");
  });
  return 0;
}
