// SPDX-License-Identifier: Apache-2.0
// The contact sheet of a case: the source as it came, oriented, next to the result.
#pragma once

#include <filesystem>
#include <string>

#include "preparation.hpp"
#include "resample.hpp"

namespace suture::examples {

// HU shown black and white.
struct shown_range {
  double black = -160, white = 240;
};

// The result is shown in HU as well, as far as the bounds of the normalization left them.
void write_case_sheet(const std::filesystem::path& path, const std::string& title, const prepared_case& source,
                      const resampled& result, const ct_normalize& normalize, const shown_range& shown);

}  // namespace suture::examples
