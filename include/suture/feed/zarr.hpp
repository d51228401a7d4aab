// SPDX-License-Identifier: Apache-2.0
// Reads cases from arrays of Zarr v3, of each only the chunks that a box meets. Not part of suture.hpp: it needs
// nlohmann/json 3, c-blosc, zstd and zlib (Debian: nlohmann-json3-dev, libblosc-dev, libzstd-dev, zlib1g-dev).
#pragma once

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "zarr_metadata.hpp"

namespace suture {

// An array in a folder: `array` holds zarr.json. A grid of extents 1, 1, 1 gets those of the array.
struct zarr_case {
  std::string name;
  std::filesystem::path array;
  suture::grid grid{};
};

// A case of a store that `suture store build` made.
struct zarr_store_case {
  zarr_case image;
  std::optional<zarr_case> labels;  // if it has any
};
inline constexpr int zarr_store_version = 1;

namespace detail {
inline grid grid_of_json(const nlohmann::ordered_json& j, const site& where) {
  grid g;
  try {
    for (std::size_t k = 0; k < 3; ++k) {
      const int axis = static_cast<int>(k);
      g.extents[axis] = j.at("extents").at(k).get<std::int64_t>();
      g.spacing[axis] = j.at("spacing").at(k).get<double>();
      g.origin[axis] = j.at("origin").at(k).get<double>();
      for (std::size_t l = 0; l < 3; ++l)
        g.direction[axis][static_cast<int>(l)] = j.at("direction").at(3 * k + l).get<double>();
    }
  } catch (const nlohmann::json::exception& problem) {
    fail(where, "grid: expected extents, spacing, origin and direction, got another: ", problem.what());
  }
  check(g, where);
  return g;
}
}  // namespace detail

// Returns the arrays of a case of a store, with the grids that the store records. The case is named after its folder.
// A case with a slope and intercept is refused, since zarr_reader does not apply them.
inline zarr_store_case read_store_case(const std::filesystem::path& folder) {
  const std::string where = "read_store_case: " + folder.string();
  const std::optional<std::string> text = detail::read_zarr_json(folder);
  require(text.has_value(), {where},
          "expected the zarr.json of a case, got none. Name the folder of a case of a store");
  const nlohmann::ordered_json group = parse_json(*text, site{where});
  const auto pointer = nlohmann::ordered_json::json_pointer("/attributes/suture");
  require(group.is_object() && group.contains(pointer) && group[pointer].is_object(), {where},
          "expected a case of a store, got another group. Name an array, its first level 0 say");
  const nlohmann::ordered_json& own = group[pointer];
  require(own.contains("store") && own["store"] == zarr_store_version, {where}, "store: expected version ",
          zarr_store_version, ", got another. Build it with the version of suture that reads it");
  require(own.contains("grid"), {where}, "grid: expected one, got none. Name a case that is a volume");
  if (own.contains("scaling") && !own["scaling"].is_null())
    fail({where}, "scaling: expected none, since voxels are read as stored, got the slope and intercept ",
         own["scaling"].dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace),
         ". Build the store from scans whose slope is 1, or name its arrays in a zarr_case and apply suture::rescale");
  const std::string name = folder.filename().string();
  zarr_store_case found{{name, folder / "0", detail::grid_of_json(own["grid"], {where})}, {}};
  if (own.contains("labels") && own["labels"].is_object() && own["labels"].contains("grid"))
    found.labels = zarr_case{name, folder / "labels/labels/0", detail::grid_of_json(own["labels"]["grid"], {where})};
  return found;
}

// Meaning of a chunk that has no file. Writers leave out chunks that hold the fill value alone, as the format allows;
// where they do not, a chunk that is missing has been lost.
enum class missing_chunks { are_fill_values, are_errors };

// Reads arrays (z, y, x) or (channel, z, y, x) of elements T: a regular grid of chunks or of shards, each chunk stored
// as it is or by blosc, zstd or gzip, with or without crc32c. Of a shard it reads its index and the chunks that the box
// meets. Arrays do not change while they are read.
template <class T>
class zarr_reader {
  static_assert(std::endian::native == std::endian::little, "suture: zarr_reader needs a little-endian machine");

public:
  using element = T;

  explicit zarr_reader(std::vector<zarr_case> cases, missing_chunks missing = missing_chunks::are_fill_values)
      : missing_(missing), indexes_(std::make_unique<index_cache>()) {
    for (zarr_case& each : cases) arrays_.push_back(open(std::move(each)));
  }

  std::size_t size() const { return arrays_.size(); }
  const std::string& name(std::size_t index) const { return at(index).item.name; }
  const grid& grid_of(std::size_t index) const { return at(index).item.grid; }
  std::int64_t channels(std::size_t index) const { return at(index).data.shape[0]; }

  // A part is a chunk that the box meets.
  std::size_t parts(std::size_t index, const voxel_box& box) const {
    const array& from = at(index);
    detail::check_box("zarr_reader", from.item.name, from.item.grid.extents, box);
    const auto chunks = chunks_of(from, box);
    return static_cast<std::size_t>(chunks.count[0] * chunks.count[1] * chunks.count[2] * chunks.count[3]);
  }
  void read_part(std::size_t index, const voxel_box& box, std::size_t part, T* to) const {
    const array& from = at(index);
    const auto chunks = chunks_of(from, box);
    detail::zarr_extents chunk;
    auto rest = static_cast<std::int64_t>(part);
    for (std::size_t k = 4; k-- > 0;) {
      chunk[k] = chunks.first[k] + rest % chunks.count[k];
      rest /= chunks.count[k];
    }
    read_chunk(from, chunk, box, to);
  }
  void read(std::size_t index, const voxel_box& box, T* to) const {
    const std::size_t count = parts(index, box);
    for (std::size_t part = 0; part < count; ++part) read_part(index, box, part, to);
  }

private:
  using extents = detail::zarr_extents;
  struct array {
    zarr_case item;
    detail::zarr_metadata data;
    T fill;
  };
  struct chunk_range {
    extents first, count;
  };
  // For each chunk of a shard its offset and its length in bytes; both all ones if the chunk is missing.
  using shard_index = std::vector<std::array<std::uint64_t, 2>>;
  struct index_cache {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const shard_index>> known;
    std::size_t chunks = 0;
  };
  static constexpr std::size_t most_known_chunks = std::size_t{1} << 20;  // 16 MiB of them

  static array open(zarr_case item) {
    const std::optional<std::string> text = detail::read_zarr_json(item.array);
    if (!text) {
      std::error_code status;
      const bool is_v2 = std::filesystem::exists(item.array / ".zarray", status);
      fail({"zarr_reader"}, item.array.string(), ": expected an array of Zarr v3 with its zarr.json, got ",
           is_v2 ? "one of Zarr v2 (.zarray). Convert it, with `zarr migrate v3` say"
                 : "none. Name the folder of an array");
    }
    array a{{}, detail::zarr_metadata_parser(item.array).parse(*text, sizeof(T)), {}};
    const std::string shown = item.array.string();
    const std::string_view expected = detail::zarr_name<T>();
    const bool is_mask = std::is_same_v<T, std::uint8_t> && a.data.data_type == "bool";
    require(a.data.data_type == expected || is_mask, {"zarr_reader"}, shown, ": data_type: expected ", expected,
            ", got ", a.data.data_type, ". Read it with a zarr_reader of its own type");
    const auto fill = detail::zarr_fill<T>(a.data.fill_value);
    require(fill.has_value(), {"zarr_reader"}, shown, ": fill_value: expected a number of type ", expected, ", got ",
            a.data.fill_value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
    a.fill = *fill;
    const extents& n = a.data.shape;
    const extent3 volume{n[1], n[2], n[3]};
    if (item.grid.extents == extent3{1, 1, 1}) item.grid.extents = volume;
    require(item.grid.extents == volume, {"zarr_reader"}, shown, ": shape: expected ", item.grid.extents,
            " as the grid says, got ", volume);
    const std::string where = "zarr_reader: " + shown;
    check(item.grid, {where});
    check_channels(n[0], {where});
    a.item = std::move(item);
    return a;
  }

  const array& at(std::size_t index) const {
    detail::check_case("zarr_reader", index, arrays_.size());
    return arrays_[index];
  }

  static chunk_range chunks_of(const array& from, const voxel_box& box) {
    chunk_range r{};
    for (std::size_t k = 0; k < 4; ++k) {
      const int axis = static_cast<int>(k) - 1;
      const std::int64_t low = k == 0 ? 0 : box.first[axis];
      const std::int64_t high = k == 0 ? from.data.shape[0] : low + box.size[axis];
      r.first[k] = low / from.data.chunk[k];
      r.count[k] = (high - 1) / from.data.chunk[k] - r.first[k] + 1;
    }
    return r;
  }

  // Decodes a chunk, and copies the part of it that is in the box.
  void read_chunk(const array& from, const extents& chunk, const voxel_box& box, T* to) const {
    const detail::zarr_metadata& m = from.data;
    extents low, high;  // of the intersection, in the array
    for (std::size_t k = 0; k < 4; ++k) {
      const int axis = static_cast<int>(k) - 1;
      const std::int64_t first = k == 0 ? 0 : box.first[axis];
      const std::int64_t last = k == 0 ? m.shape[0] : first + box.size[axis];
      low[k] = std::max(first, chunk[k] * m.chunk[k]);
      high[k] = std::min(last, (chunk[k] + 1) * m.chunk[k]);
    }
    const detail::byte_span bytes = chunk_bytes(from, chunk);
    const std::int64_t row = high[3] - low[3];
    for (std::int64_t c = low[0]; c < high[0]; ++c)
      for (std::int64_t z = low[1]; z < high[1]; ++z)
        for (std::int64_t y = low[2]; y < high[2]; ++y) {
          T* const at = to + ((c * box.size[0] + z - box.first[0]) * box.size[1] + y - box.first[1]) * box.size[2] +
                        low[3] - box.first[2];
          if (bytes.empty()) {
            std::fill_n(at, row, from.fill);
            continue;
          }
          const std::int64_t first =
              (((c - chunk[0] * m.chunk[0]) * m.chunk[1] + z - chunk[1] * m.chunk[1]) * m.chunk[2] + y -
               chunk[2] * m.chunk[2]) *
                  m.chunk[3] +
              low[3] - chunk[3] * m.chunk[3];
          std::memcpy(at, bytes.data() + static_cast<std::size_t>(first) * sizeof(T),
                      static_cast<std::size_t>(row) * sizeof(T));
        }
  }

  // The key of a chunk, such as "c/0/1/2", by the rule of zarr.json.
  static std::string key_of(const array& from, const extents& stored) {
    std::string key = from.data.v2_keys ? "" : "c";
    for (std::size_t k = static_cast<std::size_t>(4 - from.data.axes); k < 4; ++k) {
      if (!key.empty()) key += from.data.separator;
      key += std::to_string(stored[k]);
    }
    return key;
  }

  // Returns the decoded voxels of a chunk, or an empty span if it is missing. The span is valid until this thread's
  // next call.
  detail::byte_span chunk_bytes(const array& from, const extents& chunk) const {
    const detail::zarr_metadata& m = from.data;
    extents stored, inner;
    std::size_t place = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::int64_t per_file = m.stored[k] / m.chunk[k];
      stored[k] = chunk[k] / per_file;
      inner[k] = chunk[k] % per_file;
      place = place * static_cast<std::size_t>(per_file) + static_cast<std::size_t>(inner[k]);
    }
    const std::string key = key_of(from, stored);
    const std::filesystem::path path = from.item.array / key;
    const detail::input_file file("zarr_reader", path, true);
    if (!file.is_open()) return missing(from, key);
    std::uint64_t offset = 0, length = file.size();
    if (m.sharded) {
      const auto found = (*index_of(from, file, path))[place];
      offset = found[0];
      length = found[1];
      if (offset == ~std::uint64_t{0} && length == ~std::uint64_t{0}) return missing(from, key);
    }
    // Compressed data is never longer than this.
    const std::size_t bytes = m.chunk_elements() * sizeof(T);
    if (length > 2 * bytes + (std::size_t{1} << 20))
      file.refuse("chunk ", place, ": expected at most ", bytes, " bytes of voxels, got ", length, " compressed ones");
    thread_local detail::decode_scratch compressed;
    const std::span<std::uint8_t> read = compressed.of(static_cast<std::size_t>(length));
    file.read(offset, read.data(), read.size());
    std::string problem;
    const detail::byte_span decoded = detail::decode(m.codecs, read, bytes, problem);
    if (!problem.empty())
      file.refuse("chunk", m.sharded ? ' ' + std::to_string(place) + " of the shard: " : std::string(": "), problem,
                  ". Restore it, or build the array again");
    return decoded;
  }

  detail::byte_span missing(const array& from, const std::string& key) const {
    require(missing_ == missing_chunks::are_fill_values, {"zarr_reader"}, from.item.array.string(), ": chunk ", key,
            ": expected to be there, got nothing. Restore it, or build the array again");
    return {};
  }

  std::shared_ptr<const shard_index> index_of(const array& from, const detail::input_file& file,
                                              const std::filesystem::path& path) const {
    const std::lock_guard guard(indexes_->mutex);
    auto& known = indexes_->known;
    if (const auto found = known.find(path.string()); found != known.end()) return found->second;
    const detail::zarr_metadata& m = from.data;
    const std::uint64_t chunks = m.chunks_in_shard(), checksum = m.index_has_crc ? 4 : 0;
    if (chunks > file.size() / 16 || 16 * chunks + checksum > file.size())
      file.refuse("truncated: expected an index of ", chunks, " chunks, the shard has ", file.size(), " bytes");
    std::vector<std::uint8_t> raw(static_cast<std::size_t>(16 * chunks + checksum));
    file.read(m.index_at_start ? 0 : file.size() - raw.size(), raw.data(), raw.size());
    detail::byte_span bytes = raw;
    if (m.index_has_crc && !detail::without_crc32c(bytes))
      file.refuse("index: its crc32c differs from that of its bytes. Restore the shard, or build the array again");
    auto index = std::make_shared<shard_index>(static_cast<std::size_t>(chunks));
    std::memcpy(index->data(), bytes.data(), bytes.size());
    if (indexes_->chunks + chunks > most_known_chunks) known.clear(), indexes_->chunks = 0;
    indexes_->chunks += static_cast<std::size_t>(chunks);
    known.emplace(path.string(), index);
    return index;
  }

  missing_chunks missing_;
  std::vector<array> arrays_;
  std::unique_ptr<index_cache> indexes_;
};

}  // namespace suture
