// SPDX-License-Identifier: Apache-2.0
// Reads from the zarr.json of a Zarr v3 array how its chunks are stored. Needs nlohmann/json 3, c-blosc, zstd and
// zlib.
#pragma once

#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "../base/vec.hpp"
#include "../replay/json_text.hpp"
#include "file.hpp"
#include "reader.hpp"
#include "zarr_codecs.hpp"

namespace suture::detail {

inline constexpr std::size_t most_zarr_chunk_bytes = std::size_t{1} << 30;
inline constexpr std::uint64_t most_zarr_json_bytes = std::uint64_t{1} << 26;

// Four axes: channel, z, y, x.
using zarr_extents = std::array<std::int64_t, 4>;

struct zarr_metadata {
  zarr_extents shape{1, 1, 1, 1};
  zarr_extents stored{1, 1, 1, 1};  // one file: a shard, or a chunk
  zarr_extents chunk{1, 1, 1, 1};   // decoded at once
  int axes = 3;                     // of the array itself
  std::string data_type;
  nlohmann::ordered_json fill_value;
  std::vector<zarr_codec> codecs;  // of a chunk, after `bytes`
  bool sharded = false, index_at_start = false, index_has_crc = false;
  bool v2_keys = false;
  char separator = '/';

  std::size_t chunk_elements() const { return static_cast<std::size_t>(chunk[0] * chunk[1] * chunk[2] * chunk[3]); }
  std::size_t chunks_in_shard() const {
    std::size_t n = 1;
    for (std::size_t k = 0; k < 4; ++k) n *= static_cast<std::size_t>(stored[k] / chunk[k]);
    return n;
  }
};

// Reads zarr.json. What would change the meaning of the voxels and is not implemented here is refused, with the name of
// the array and of the field.
class zarr_metadata_parser {
public:
  using json = nlohmann::ordered_json;

  explicit zarr_metadata_parser(const std::filesystem::path& array) : name_(array.string()) {}

  zarr_metadata parse(const std::string& text, std::size_t element_bytes) {
    const std::string where = "zarr_reader: " + name_ + "/zarr.json";
    const json j = parse_json(text, site{where});
    demand(j.is_object(), "zarr.json", "an object", j);
    demand(has(j, "zarr_format", 3), "zarr_format", "3", at(j, "zarr_format"));
    demand(has(j, "node_type", "array"), "node_type", "array", at(j, "node_type"),
           ". Name the array in the group, its first level 0 say");
    constexpr std::string_view known[] = {
        "zarr_format",        "node_type",  "shape",  "data_type",  "chunk_grid",
        "chunk_key_encoding", "fill_value", "codecs", "attributes", "storage_transformers",
        "dimension_names"};
    for (const auto& [key, value] : j.items()) {
      const bool is_known = std::find(std::begin(known), std::end(known), key) != std::end(known);
      const bool may_be_ignored = value.is_object() && has(value, "must_understand", false);
      demand(is_known || may_be_ignored, key, "no extension that must be understood", value);
    }
    demand(at(j, "storage_transformers").empty(), "storage_transformers", "none", at(j, "storage_transformers"));
    zarr_metadata m;
    m.axes = static_cast<int>(at(j, "shape").size());
    demand(at(j, "shape").is_array() && (m.axes == 3 || m.axes == 4), "shape",
           "3 axes (z, y, x) or 4 (channel, z, y, x)", at(j, "shape"));
    m.shape = extents(at(j, "shape"), "shape", m.axes);
    names(at(j, "dimension_names"), m.axes);
    demand(at(j, "data_type").is_string(), "data_type", "a name", at(j, "data_type"));
    m.data_type = at(j, "data_type").get<std::string>();
    m.fill_value = at(j, "fill_value");
    const json& chunks = at(j, "chunk_grid");
    demand(has(chunks, "name", "regular"), "chunk_grid", "regular", chunks);
    m.chunk = m.stored = extents(at(at(chunks, "configuration"), "chunk_shape"), "chunk_shape", m.axes);
    keys(at(j, "chunk_key_encoding"), m);
    codecs(at(j, "codecs"), m);
    double bytes = static_cast<double>(element_bytes);
    for (const std::int64_t n : m.chunk) bytes *= static_cast<double>(n);
    require(bytes <= static_cast<double>(most_zarr_chunk_bytes), {"zarr_reader"}, name_,
            ": chunk_shape: expected at most ", most_zarr_chunk_bytes, " bytes a chunk, got ", bytes,
            ". Write it with smaller chunks");
    return m;
  }

private:
  static const json& at(const json& j, const char* key) {
    static const json nothing;
    return j.is_object() && j.contains(key) ? j[key] : nothing;
  }
  template <class T>
  static bool has(const json& j, const char* key, const T& value) {
    return at(j, key) == json(value);
  }
  void demand(bool good, std::string_view field, std::string_view expected, const json& got,
              std::string_view advice = {}) const {
    if (good) return;
    std::string shown = got.dump(-1, ' ', true, json::error_handler_t::replace);
    if (shown.size() > 120) shown = shown.substr(0, 117) + "...";
    fail({"zarr_reader"}, name_, ": ", field, ": expected ", expected, ", got ", got.is_null() ? "nothing" : shown,
         advice.empty() ? std::string_view(". Write it as Zarr v3 that this reader takes") : advice);
  }

  zarr_extents extents(const json& j, std::string_view field, int axes) const {
    demand(j.is_array() && j.size() == static_cast<std::size_t>(axes), field, "one number for each axis", j);
    zarr_extents e{1, 1, 1, 1};
    for (std::size_t k = 0; k < j.size(); ++k) {
      const bool whole = j[k].is_number_integer() && j[k] > 0 && j[k] <= (1 << 30);
      demand(whole, field, "whole numbers from 1 to 2^30", j);
      e[4 - j.size() + k] = j[k].get<std::int64_t>();
    }
    return e;
  }

  // Names of axes may be missing; c, z, y and x must be in this order.
  void names(const json& j, int axes) const {
    if (j.is_null()) return;
    demand(j.is_array() && j.size() == static_cast<std::size_t>(axes), "dimension_names", "one for each axis", j);
    for (std::size_t k = 0; k < j.size(); ++k) {
      const std::string_view own = std::string_view("czyx").substr(4 - j.size() + k, 1);
      const bool other = j[k].is_string() && j[k] != own && (j[k] == "z" || j[k] == "y" || j[k] == "x" || j[k] == "c");
      demand(!other, "dimension_names", axes == 3 ? "z, y, x" : "c, z, y, x", j);
    }
  }

  void keys(const json& j, zarr_metadata& m) const {
    demand(has(j, "name", "default") || has(j, "name", "v2"), "chunk_key_encoding", "default or v2", j);
    m.v2_keys = has(j, "name", "v2");
    m.separator = m.v2_keys ? '.' : '/';
    const json& separator = at(at(j, "configuration"), "separator");
    if (separator.is_null()) return;
    demand(separator == "/" || separator == ".", "chunk_key_encoding", "separator / or .", j);
    m.separator = separator.get<std::string>()[0];
  }

  // Returns the codecs after `bytes`, which must come first, with the byte order of this machine.
  std::vector<zarr_codec> of_bytes(const json& list, std::string_view field) const {
    demand(list.is_array() && !list.empty(), field, "a list of codecs", list);
    const json& first = list[0];
    demand(has(first, "name", "bytes"), field, "bytes first (transpose and others are not read)", first);
    const json& endian = at(at(first, "configuration"), "endian");
    demand(endian.is_null() || endian == "little", field, "bytes of little endian", first);
    std::vector<zarr_codec> codecs;
    for (std::size_t i = 1; i < list.size(); ++i) {
      const json& name = at(list[i], "name");
      constexpr std::pair<std::string_view, zarr_codec> known[] = {{"blosc", zarr_codec::blosc},
                                                                   {"zstd", zarr_codec::zstd},
                                                                   {"gzip", zarr_codec::gzip},
                                                                   {"crc32c", zarr_codec::crc32c}};
      const auto* found =
          std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return name == k.first; });
      demand(found != std::end(known), field, "blosc, zstd, gzip or crc32c", list[i]);
      codecs.push_back(found->second);
    }
    return codecs;
  }

  void codecs(const json& list, zarr_metadata& m) const {
    demand(list.is_array() && !list.empty(), "codecs", "a list of codecs", list);
    m.sharded = has(list[0], "name", "sharding_indexed");
    if (!m.sharded) {
      m.codecs = of_bytes(list, "codecs");
      return;
    }
    demand(list.size() == 1, "codecs", "sharding_indexed alone", list);
    const json& shard = at(list[0], "configuration");
    m.chunk = extents(at(shard, "chunk_shape"), "chunk_shape of sharding_indexed", m.axes);
    for (std::size_t k = 0; k < 4; ++k)
      demand(m.stored[k] % m.chunk[k] == 0, "chunk_shape of sharding_indexed", "whole chunks in a shard",
             at(shard, "chunk_shape"));
    double chunks = 1;
    for (std::size_t k = 0; k < 4; ++k) chunks *= static_cast<double>(m.stored[k] / m.chunk[k]);
    demand(chunks <= double{1 << 30}, "chunk_shape of sharding_indexed", "at most 2^30 chunks in a shard",
           at(shard, "chunk_shape"));
    m.codecs = of_bytes(at(shard, "codecs"), "codecs of sharding_indexed");
    const std::vector<zarr_codec> index = of_bytes(at(shard, "index_codecs"), "index_codecs");
    m.index_has_crc = index.size() == 1 && index[0] == zarr_codec::crc32c;
    demand(index.empty() || m.index_has_crc, "index_codecs", "bytes, or bytes and crc32c", at(shard, "index_codecs"));
    const json& place = at(shard, "index_location");
    demand(place.is_null() || place == "start" || place == "end", "index_location", "start or end", place);
    m.index_at_start = place == "start";
  }

  std::string name_;
};

// Returns the text of a zarr.json, or nothing if there is no such file.
inline std::optional<std::string> read_zarr_json(const std::filesystem::path& folder) {
  const input_file file("zarr_reader", folder / "zarr.json", true);
  if (!file.is_open()) return {};
  if (file.size() > most_zarr_json_bytes)
    file.refuse("expected at most ", most_zarr_json_bytes, " bytes, got ", file.size());
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

// The name of an element type in Zarr v3.
template <class T>
std::string_view zarr_name() {
  if constexpr (std::is_same_v<T, half>)
    return "float16";
  else if constexpr (std::is_same_v<T, float>)
    return "float32";
  else
    return storage<T>::name;
}

// Returns a fill value as an element: a number within T, rounded if T is a floating-point type, NaN or an infinity, or
// the bits in hexadecimal. Returns nothing for any other value.
template <class T>
std::optional<T> zarr_fill(const nlohmann::ordered_json& j) {
  constexpr bool is_real = !std::is_integral_v<T>;
  T value{};
  if constexpr (std::is_same_v<T, std::uint8_t>)
    if (j.is_boolean()) return static_cast<T>(j.get<bool>() ? 1 : 0);
  if (j.is_string() && is_real) {
    const auto text = j.get<std::string>();
    // The format fixes the bits of NaN.
    if (text == "NaN") return zarr_fill<T>(sizeof(T) == 4 ? "0x7fc00000" : "0x7e00");
    if (text == "Infinity" || text == "-Infinity") {
      using limits = std::numeric_limits<float>;
      return storage<T>::store(text[0] == '-' ? -limits::infinity() : limits::infinity());
    }
    if (text.size() != 2 + 2 * sizeof(T) || !text.starts_with("0x") ||
        text.find_first_not_of("0123456789abcdefABCDEF", 2) != text.npos)
      return {};
    const std::uint64_t bits = std::stoull(text.substr(2), nullptr, 16);
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  if constexpr (is_real) {
    if (!j.is_number()) return {};
    if (!finite_as<T>(j.get<double>())) return {};
    return storage<T>::store(j.get<float>());
  } else {
    if (!j.is_number_integer()) return {};
    const bool fits =
        j.is_number_unsigned() ? std::in_range<T>(j.get<std::uint64_t>()) : std::in_range<T>(j.get<std::int64_t>());
    if (!fits) return {};
    return static_cast<T>(j.get<std::int64_t>());
  }
}

}  // namespace suture::detail
