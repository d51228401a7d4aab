// SPDX-License-Identifier: Apache-2.0
// A cohort's fingerprint as a file: nnU-Net's keys for what it holds too, and the exact counts, so that files of
// partial cohorts can be read back and merged.
#pragma once

#include <filesystem>

#include "report.hpp"
#include "suture/fit/fingerprint.hpp"

namespace suture::examples {

// {"foreground_intensity_properties_per_channel": {"0": {"max", "mean", "median", "min", "percentile_00_5",
//   "percentile_99_5", "std"}}, "shapes_after_crop": [[z, y, x]], "spacings": [[z, y, x]], "cases": [name],
//   "foreground_counts_per_channel": {"0": {"values": [], "counts": []}}}
report fingerprint_to_json(const cohort_fingerprint& fingerprint);

// From the shapes, spacings, cases and counts; the properties follow from them. Throws suture::error with the reason if
// the document is no such fingerprint.
cohort_fingerprint fingerprint_from_json(const report& document);

// Throws suture::error naming the file. A file is written whole or not at all.
void write_fingerprint(const std::filesystem::path& path, const cohort_fingerprint& fingerprint);
cohort_fingerprint read_fingerprint(const std::filesystem::path& path);

}  // namespace suture::examples
