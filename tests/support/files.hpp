// SPDX-License-Identifier: Apache-2.0
// What the tests of files share: bytes written into the folder of a test, and a grid that is not aligned to its axes.
#pragma once

#include <zlib.h>

#include <fstream>
#include <vector>

#include "scratch_folder.hpp"
#include "suture/image/grid.hpp"

namespace support {

class files : public scratch_folder {
protected:
  // Compressed where the name says so.
  std::filesystem::path write(const std::string& name, const std::vector<unsigned char>& bytes) const {
    const std::filesystem::path path = folder / name;
    if (path.extension() == ".gz") {
      gzFile_s* file = gzopen(path.c_str(), "wb");
      gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
      gzclose(file);
    } else {
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    return path;
  }
};

inline suture::grid oblique_grid() {
  suture::grid g;
  g.extents = {4, 5, 6};
  g.spacing = {2.5, 0.8, 0.75};
  g.origin = {-103.5, 21.25, 77};
  const double c = 0.8, s = 0.6;  // exact cosine and sine
  g.direction = {{{1, 0, 0}, {0, c, -s}, {0, s, c}}};
  return g;
}

}  // namespace support
