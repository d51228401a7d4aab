// SPDX-License-Identifier: Apache-2.0
// The bytes are a cohort's fingerprint. One that is accepted is written and read back as the same.
#include "common/fingerprint_json.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file file(data, size);
  fuzz::accepted([&] {
    const auto once = suture::examples::fingerprint_to_json(suture::examples::read_fingerprint(file.path()));
    fuzz::must_hold(
        fuzz::accepted([&] {
          const auto twice = suture::examples::fingerprint_to_json(suture::examples::fingerprint_from_json(once));
          fuzz::must_hold(once.dump() == twice.dump(), "an accepted fingerprint reads back as it is written");
        }),
        "what is written of an accepted fingerprint is accepted");
  });
  return 0;
}
