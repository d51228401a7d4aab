// SPDX-License-Identifier: Apache-2.0
// The bytes are a Zarr v3 array: its zarr.json, a byte of 0, and what is its only chunk or shard. What is read of it in
// boxes must be what is read of it as a whole.
#include "suture/feed/zarr.hpp"

#include <fstream>

#include "fuzz.hpp"

namespace {

namespace fs = std::filesystem;

// A folder of this process in memory, where there is such a place.
struct folder {
  fs::path path = fs::path(fs::exists("/dev/shm") ? "/dev/shm" : "/tmp") / ("fuzz_zarr_" + std::to_string(getpid()));
  folder() { fs::create_directories(path / "c/0/0"); }
  ~folder() { fs::remove_all(path); }
  void write(const char* name, const std::uint8_t* data, std::size_t size) const {
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
};

template <class T>
void read(const fs::path& array) {
  fuzz::accepted([&] {
    const suture::zarr_reader<T> reader({{"case", array}});
    const suture::extent3 n = reader.grid_of(0).extents;
    const auto channels = static_cast<std::size_t>(reader.channels(0));
    const auto voxels = static_cast<std::size_t>(reader.grid_of(0).voxels());
    if (channels * voxels > 1 << 20) return;  // all of it is only much of the same
    std::vector<T> whole(channels * voxels), plane(channels * static_cast<std::size_t>(n[1] * n[2]));
    reader.read(0, {{0, 0, 0}, n}, whole.data());
    for (std::int64_t z = 0; z < std::min<std::int64_t>(n[0], 4); ++z) {
      reader.read(0, {{z, 0, 0}, {1, n[1], n[2]}}, plane.data());
      const std::size_t size = static_cast<std::size_t>(n[1] * n[2]);
      for (std::size_t c = 0; c < channels; ++c)
        fuzz::must_hold(
            std::memcmp(plane.data() + c * size, whole.data() + c * voxels + static_cast<std::size_t>(z) * size,
                        size * sizeof(T)) == 0,
            "a box has the voxels of the whole");
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const folder here;
  const auto* const end = data + size;
  const auto* const text_end = std::find(data, end, std::uint8_t{0});
  here.write("zarr.json", data, static_cast<std::size_t>(text_end - data));
  const auto* const chunk = text_end == end ? end : text_end + 1;
  here.write("c/0/0/0", chunk, static_cast<std::size_t>(end - chunk));
  read<std::int16_t>(here.path);
  read<float>(here.path);
  return 0;
}
