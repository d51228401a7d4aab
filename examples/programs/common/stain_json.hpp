// SPDX-License-Identifier: Apache-2.0
// The stains of a slide or another group of tiles as a file: fitted once, and ever after what tiles are normalized to,
// a fallback, or, by basis_of, what tiles are normalized from.
#pragma once

#include <filesystem>

#include "report.hpp"
#include "suture/stats/stain_basis.hpp"

namespace suture::examples {

// {"stains": {"hematoxylin": [r, g, b], "eosin": [r, g, b]}, "max_concentration": {"hematoxylin": h, "eosin": e}};
// every bit is kept.
report stains_to_json(const stain_reference& stains);

// Throws suture::error with the reason if the document is no such matrix or it cannot be inverted.
stain_reference stains_from_json(const report& document);

// Throws suture::error naming the file. A file is written whole or not at all.
void write_stains(const std::filesystem::path& path, const stain_reference& stains);
stain_reference read_stains(const std::filesystem::path& path);

}  // namespace suture::examples
