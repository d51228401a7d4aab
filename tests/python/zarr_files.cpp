// SPDX-License-Identifier: Apache-2.0
// Reads boxes of a Zarr array for zarr_files.py, or repeats one for as long as it takes to time it.
//   zarr_files ARRAY TYPE REPEAT < BOXES > VOXELS
// A box is six numbers, its first voxel and its size. Voxels of all boxes follow one another, as they lie in memory.
// Seconds of reading go to standard error.
#include <chrono>
#include <cstdio>
#include <iostream>

#include "suture/feed/zarr.hpp"

namespace {

using namespace suture;

template <class T>
void read_boxes(const std::string& array, int repeat) {
  const zarr_reader<T> reader({{"case", array}});
  double seconds = 0;
  voxel_box box{};
  while (std::cin >> box.first[0] >> box.first[1] >> box.first[2] >> box.size[0] >> box.size[1] >> box.size[2]) {
    std::vector<T> voxels(static_cast<std::size_t>(reader.channels(0) * box.voxels()));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeat; ++i) reader.read(0, box, voxels.data());
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::fwrite(voxels.data(), sizeof(T), voxels.size(), stdout);
  }
  std::fprintf(stderr, "%.6f\n", seconds / repeat);
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string type = words[2];
  try {
    if (type == "int16") read_boxes<std::int16_t>(words[1], std::stoi(words[3]));
    if (type == "uint8") read_boxes<std::uint8_t>(words[1], std::stoi(words[3]));
    if (type == "float32") read_boxes<float>(words[1], std::stoi(words[3]));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
  return 0;
}
