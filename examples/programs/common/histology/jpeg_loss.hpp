// SPDX-License-Identifier: Apache-2.0
// What baseline JPEG loses, without the file.
#pragma once

#include <cstdint>
#include <vector>

namespace suture::examples::histology {

// rgb: (row, column, channel), 0..255; rows and columns multiples of 8. quality: 1..100 as in libjpeg.
void lose_as_jpeg(std::vector<float>& rgb, std::int64_t rows, std::int64_t columns, int quality);

}  // namespace suture::examples::histology
