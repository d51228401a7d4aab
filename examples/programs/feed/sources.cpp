// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include "suture/feed/nifti.hpp"
#if defined(SUTURE_EXAMPLE_ZARR)
#include "suture/feed/zarr.hpp"
#endif

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

struct zeros {
  using element = std::uint8_t;
  grid on;
  std::string of;
  std::size_t size() const { return 1; }
  std::string name(std::size_t) const { return of; }
  grid grid_of(std::size_t) const { return on; }
  std::int64_t channels(std::size_t) const { return 1; }
  void read(std::size_t, const voxel_box& box, std::uint8_t* to) const {
    std::memset(to, 0, static_cast<std::size_t>(box.voxels()));
  }
};

template <class T>
any_reader<T> open_zarr([[maybe_unused]] const std::string& name, const fs::path& path) {
#if defined(SUTURE_EXAMPLE_ZARR)
  std::error_code status;
  const bool is_array = !fs::exists(path / "0/zarr.json", status);
  if (is_array) return zarr_reader<T>({{name, path}});
  const zarr_store_case found = read_store_case(path);
  if constexpr (std::is_same_v<T, std::int16_t>) return zarr_reader<T>({found.image});
  require(found.labels.has_value(), site{"--label"}, path.string(), ": the case of the store has no labels");
  return zarr_reader<T>({*found.labels});
#else
  fail(site{"zarr"}, path.string(),
       ": is a folder, but this program was built without c-blosc and zstd (Debian: libblosc-dev libzstd-dev)");
#endif
}

}  // namespace

template <class T>
any_reader<T> open_case(const std::string& path, std::uint64_t most_inflated_bytes) {
  const std::string name = fs::path(path).filename().string();
  std::error_code status;
  if (fs::is_directory(path, status)) return open_zarr<T>(name, path);
  return nifti_reader<T>({{name, path}}, most_inflated_bytes);
}
template any_reader<std::int16_t> open_case(const std::string&, std::uint64_t);
template any_reader<std::uint8_t> open_case(const std::string&, std::uint64_t);

any_reader<std::uint8_t> no_labels(const grid& g, const std::string& name) { return zeros{g, name}; }

}  // namespace suture::examples
