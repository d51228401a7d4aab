// SPDX-License-Identifier: Apache-2.0
#include "tiff_check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "suture/base/error.hpp"

namespace suture::examples {
namespace {

constexpr std::uint64_t longest_side = 32767;                  // of a tile
constexpr std::uint64_t most_pixels = std::uint64_t{1} << 26;  // of a tile
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;   // of a tile or strip, decoded
constexpr std::uint64_t most_values = std::uint64_t{1} << 27;  // in all lists of tiles
constexpr std::uint64_t most_fields = std::uint64_t{1} << 20;  // of all pages

enum tag : std::uint16_t {
  image_width = 256,
  image_length = 257,
  bits_per_sample = 258,
  samples_per_pixel = 277,
  rows_per_strip = 278,
  planar_configuration = 284,
  strip_offsets = 273,
  strip_byte_counts = 279,
  tile_width = 322,
  tile_length = 323,
  tile_offsets = 324,
  tile_byte_counts = 325,
  hamamatsu_source_lens = 65420,
};

const char* name_of(std::uint16_t t) {
  switch (t) {
    case image_width:
      return "ImageWidth";
    case image_length:
      return "ImageLength";
    case bits_per_sample:
      return "BitsPerSample";
    case samples_per_pixel:
      return "SamplesPerPixel";
    case rows_per_strip:
      return "RowsPerStrip";
    case planar_configuration:
      return "PlanarConfiguration";
    case strip_offsets:
      return "StripOffsets";
    case strip_byte_counts:
      return "StripByteCounts";
    case tile_width:
      return "TileWidth";
    case tile_length:
      return "TileLength";
    case tile_offsets:
      return "TileOffsets";
    case tile_byte_counts:
      return "TileByteCounts";
    default:
      return nullptr;
  }
}

// Bytes of a value of this type; 0 for types that no TIFF has.
std::uint64_t bytes_of(std::uint64_t type) {
  switch (type) {
    case 1:  // BYTE, ASCII, SBYTE, UNDEFINED
    case 2:
    case 6:
    case 7:
      return 1;
    case 3:  // SHORT, SSHORT
    case 8:
      return 2;
    case 4:  // LONG, SLONG, FLOAT, IFD
    case 9:
    case 11:
    case 13:
      return 4;
    case 5:  // RATIONAL, SRATIONAL, DOUBLE, LONG8, SLONG8, IFD8
    case 10:
    case 12:
    case 16:
    case 17:
    case 18:
      return 8;
    default:
      return 0;
  }
}
bool is_whole_number(std::uint64_t type) {
  return type == 1 || type == 3 || type == 4 || type == 13 || type == 16 || type == 18;
}

struct field {
  std::uint64_t type = 0, count = 0, place = 0;  // where in the file its values begin
};
using page = std::map<std::uint16_t, field>;

class tiff {
public:
  explicit tiff(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary) {
    std::error_code status;
    size_ = std::filesystem::file_size(path, status);
    if (status || !file_) return;  // whoever opens it says so
    std::array<char, 4> start{};
    if (size_ < 8 || !file_.read(start.data(), 4)) return;
    if (std::memcmp(start.data(), "II", 2) != 0 && std::memcmp(start.data(), "MM", 2) != 0) return;
    big_endian_ = start[0] == 'M';
    const std::uint64_t version = number(2, 2);
    big_ = version == 43;
    if (!big_ && version != 42) return;
    is_tiff_ = true;
  }

  void check(std::size_t pages) {
    if (!is_tiff_) return;
    demand(!big_ || (size_ >= 16 && number(4, 2) == 8 && number(6, 2) == 0), "its BigTIFF header is damaged");
    if (!big_ && is_ndpi()) return;
    std::uint64_t at = big_ ? number(8, 8) : number(4, 4);
    demand(at != 0, "holds no page");
    std::set<std::uint64_t> seen;
    for (page_ = 1; at != 0 && page_ <= pages; ++page_) {
      demand(seen.insert(at).second, "the page at byte ", at, " follows itself");
      const page p = read_page(at);
      check_page(p);
    }
  }

private:
  template <class... Parts>
  void demand(bool good, const Parts&... parts) const {
    if (good) return;
    if (page_ == 0) fail(site{"TIFF"}, path_.string(), ": ", parts...);
    fail(site{"TIFF"}, path_.string(), ": page ", page_, ": ", parts...);
  }
  bool inside(std::uint64_t at, std::uint64_t bytes) const { return at <= size_ && bytes <= size_ - at; }

  // From a place inside of the file.
  std::vector<unsigned char> bytes_at(std::uint64_t at, std::uint64_t count) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(count));
    demand(file_.good(), "cannot be read at byte ", at);
    return bytes;
  }
  // A whole number in the file's byte order.
  std::uint64_t number(const unsigned char* bytes, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[big_endian_ ? i : count - 1 - i];
    return value;
  }
  std::uint64_t number(std::uint64_t at, std::size_t count) { return number(bytes_at(at, count).data(), count); }

  // Its first page is where the header's eight bytes say, and has a field of Hamamatsu's.
  bool is_ndpi() {
    if (size_ < 12) return false;
    const std::uint64_t at = number(4, 8);
    if (at == 0 || !inside(at, 2)) return false;
    const std::uint64_t fields = number(at, 2);
    if (!inside(at + 2, 12 * fields)) return false;
    const std::vector<unsigned char> listed = bytes_at(at + 2, 12 * fields);
    for (std::size_t i = 0; i < fields; ++i)
      if (number(listed.data() + 12 * i, 2) == hamamatsu_source_lens) return true;
    return false;
  }

  // Leaves in `at` where the next page is.
  page read_page(std::uint64_t& at) {
    const std::size_t wide = big_ ? 8 : 4, counted = big_ ? 8 : 2, each = 4 + 2 * wide;
    demand(inside(at, counted), "is said to be at byte ", at, ", the file has ", size_, ": truncated");
    const std::uint64_t fields = number(at, counted);
    demand(fields <= most_fields - fields_, "has ", fields, " fields; at most 2^20 are read in all");
    fields_ += fields;
    demand(inside(at + counted, each * fields + wide), "has ", fields, " fields at byte ", at, ", the file has ", size_,
           ": truncated");
    page result;
    const std::vector<unsigned char> listed = bytes_at(at + counted, each * fields + wide);
    for (std::size_t i = 0; i < fields; ++i) {
      const unsigned char* entry = listed.data() + each * i;
      const auto name = static_cast<std::uint16_t>(number(entry, 2));
      field f{number(entry + 2, 2), number(entry + 4, wide), at + counted + each * i + 4 + wide};
      const std::uint64_t bytes = bytes_of(f.type);
      const bool is_read = name_of(name) != nullptr;
      const std::string called = is_read ? name_of(name) : "tag " + std::to_string(name);
      demand(!is_read || is_whole_number(f.type), called, " has type ", f.type, ", not one of whole numbers");
      if (bytes == 0) continue;  // libraries leave it out
      // Of every tag: what they do not use they may read all the same.
      demand((f.count > 0 || !is_read) && f.count <= size_ / bytes, called, " has ", f.count,
             " values, which no file of ", size_, " bytes holds");
      if (bytes * f.count > wide) f.place = number(entry + 4 + wide, wide);
      demand(inside(f.place, bytes * f.count), called, " has ", f.count, " values at byte ", f.place, ", the file has ",
             size_, ": truncated");
      demand(!is_read || result.emplace(name, f).second, called, " is given twice");
    }
    at = number(listed.data() + each * fields, wide);
    return result;
  }

  std::optional<std::uint64_t> first_of(const page& p, tag t) {
    const auto found = p.find(t);
    if (found == p.end()) return {};
    return number(found->second.place, static_cast<std::size_t>(bytes_of(found->second.type)));
  }
  std::vector<std::uint64_t> all_of(const field& f) {
    demand(f.count <= most_values - values_, "lists too many tiles; at most 2^27 are read in all");
    values_ += f.count;
    const auto bytes = static_cast<std::size_t>(bytes_of(f.type));
    const std::vector<unsigned char> raw = bytes_at(f.place, bytes * f.count);
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < raw.size(); i += bytes) values.push_back(number(raw.data() + i, bytes));
    return values;
  }

  void check_page(const page& p) {
    for (const tag t : {image_width, image_length, samples_per_pixel, bits_per_sample, tile_width, tile_length})
      if (const auto value = first_of(p, t))
        demand(*value > 0 && *value <= 0x7fffffff, name_of(t), " is ", *value, ", must be 1 to 2^31 - 1");
    const std::uint64_t width = first_of(p, image_width).value_or(0), length = first_of(p, image_length).value_or(0);
    const std::uint64_t samples = first_of(p, samples_per_pixel).value_or(1);
    const std::uint64_t bits = first_of(p, bits_per_sample).value_or(1);
    demand(samples <= 0xffff && bits <= 64, samples, " samples of ", bits,
           " bits to a pixel; at most 65535 of 64 bits are read");
    const auto too_large = [&](std::uint64_t rows, std::uint64_t columns) {
      return rows * columns > most_bytes * 8 / (samples * bits);
    };
    if (const auto columns = first_of(p, tile_width), rows = first_of(p, tile_length); columns && rows) {
      demand(*columns <= longest_side && *rows <= longest_side && *columns * *rows <= most_pixels, "tiles of ", *rows,
             " by ", *columns, " pixels; at most ", longest_side, " along a side and 2^26 in all are read at once");
      demand(!too_large(*rows, *columns), "tiles of ", *rows, " by ", *columns, " pixels with ", samples,
             " samples of ", bits, " bits; at most 2^31 bytes are read at once");
      const bool apart = first_of(p, planar_configuration).value_or(1) == 2;
      const std::uint64_t tiles = ((width + *columns - 1) / *columns) * ((length + *rows - 1) / *rows);
      check_tiles(p, tiles, apart ? samples : 1);
    } else if (p.contains(strip_offsets)) {
      const std::uint64_t strip = std::min(first_of(p, rows_per_strip).value_or(length), length);
      demand(!too_large(strip, width), "strips of ", strip, " by ", width, " pixels with ", samples, " samples of ",
             bits, " bits; at most 2^31 bytes are read at once");
    }
  }

  // `tiles` of each of some planes.
  void check_tiles(const page& p, std::uint64_t tiles, std::uint64_t planes) {
    const auto at = p.find(tile_offsets), lengths = p.find(tile_byte_counts);
    if (at == p.end() || lengths == p.end()) return;  // whoever reads them says so
    for (const auto& found : {at, lengths})
      demand(found->second.count / planes >= tiles, name_of(found->first), " has ", found->second.count, " values for ",
             tiles, planes > 1 ? " tiles of each sample" : " tiles");
    const std::vector<std::uint64_t> offsets = all_of(at->second), bytes = all_of(lengths->second);
    for (std::size_t i = 0; i < tiles * planes; ++i)
      demand(bytes[i] == 0 || inside(offsets[i], bytes[i]), "tile ", i, " has ", bytes[i], " bytes at byte ",
             offsets[i], ", the file has ", size_, ": truncated");
  }

  const std::filesystem::path& path_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  bool is_tiff_ = false, big_endian_ = false, big_ = false;
  std::size_t page_ = 0;  // from 1 on; 0: the header
  std::uint64_t fields_ = 0, values_ = 0;
};

}  // namespace

void check_tiff(const std::filesystem::path& path, std::size_t pages) { tiff(path).check(pages); }

}  // namespace suture::examples
