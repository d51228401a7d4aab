// SPDX-License-Identifier: Apache-2.0
// The contact sheet of a case: the source as it came, oriented, next to the result.
#pragma once

#include <filesystem>
#include <string>

#include "common/contact_sheet.hpp"
#include "preparation.hpp"
#include "resample.hpp"

namespace suture::examples {

// The result is shown in HU as well, as far as the bounds of the normalization left them.
void write_case_sheet(const std::filesystem::path& path, const std::string& title, const prepared_case& source,
                      const resampled& result, const ct_normalize& normalize, const gray_window& shown);

}  // namespace suture::examples
