// SPDX-License-Identifier: Apache-2.0
// Zarr v3 as zarr-python and tensorstore write it (tests/zarr/write.py), in boxes and as a whole, and arrays that are
// damaged or of another kind, each refused in one sentence.
#include "suture/feed/zarr.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/expect_says.hpp"
#include "support/scratch_folder.hpp"
#include "support/source_directory.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;

const fs::path arrays = support::source_directory() / "tests/zarr/arrays";
constexpr extent3 shape{6, 7, 10};

template <class T>
T value(std::int64_t c, std::int64_t z, std::int64_t y, std::int64_t x) {
  const std::int64_t n = 37 * (((c * shape[0] + z) * shape[1] + y) * shape[2] + x) - 5000;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(n));
  else
    return storage<T>::store(static_cast<float>(n) / 8);
}

template <class T>
std::vector<T> read(const zarr_reader<T>& reader, const voxel_box& box) {
  std::vector<T> v(static_cast<std::size_t>(reader.channels(0) * box.voxels()));
  reader.read(0, box, v.data());
  return v;
}

// Boxes of every kind: the whole, single voxels, within a chunk, across chunks.
const voxel_box boxes[] = {{{0, 0, 0}, shape},     {{5, 6, 9}, {1, 1, 1}},  {{0, 0, 4}, {1, 1, 2}},
                           {{1, 1, 1}, {2, 2, 3}}, {{2, 3, 0}, {2, 2, 10}}, {{0, 0, 0}, {6, 7, 1}},
                           {{3, 4, 5}, {3, 3, 5}}};

template <class T>
void expect_holds(const std::string& name, std::optional<T> fill = {}, std::int64_t channels = 1) {
  const zarr_reader<T> reader({{name, arrays / name}});
  ASSERT_EQ(reader.channels(0), channels);
  EXPECT_EQ(reader.grid_of(0).extents, shape);
  for (const voxel_box& box : boxes) {
    const std::vector<T> got = read(reader, box);
    std::size_t at = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t z = box.first[0]; z < box.first[0] + box.size[0]; ++z)
        for (std::int64_t y = box.first[1]; y < box.first[1] + box.size[1]; ++y)
          for (std::int64_t x = box.first[2]; x < box.first[2] + box.size[2]; ++x, ++at) {
            const T expected = fill && x >= 5 ? *fill : value<T>(c, z, y, x);
            ASSERT_EQ(std::memcmp(&got[at], &expected, sizeof(T)), 0) << name << " at " << z << ' ' << y << ' ' << x;
          }
  }
}

TEST(zarr, arrays_of_zarr_python_and_tensorstore_are_read) {
  expect_holds<std::int16_t>("plain");
  expect_holds<std::int16_t>("holes", std::int16_t{-1000});
  expect_holds<float>("float_holes", std::numeric_limits<float>::quiet_NaN());
  expect_holds<std::uint8_t>("dots");
  for (const char* codec : {"lz4", "zstd"})
    for (const char* shuffle : {"shuffle", "bitshuffle", "noshuffle"})
      expect_holds<std::int16_t>(std::string("blosc_") + codec + "_" + shuffle);
  expect_holds<std::uint16_t>("zstd");
  expect_holds<std::int32_t>("gzip");
  expect_holds<half>("zstd_crc32c");
  expect_holds<std::uint8_t>("channels", {}, 2);
  expect_holds<std::int16_t>("sharded_start", std::int16_t{3});
  expect_holds<std::int16_t>("sharded_end", std::int16_t{3});
  expect_holds<std::int16_t>("tensorstore", std::int16_t{7});
  expect_holds<std::int16_t>("tensorstore_sharded", std::int16_t{7});
}

TEST(zarr, a_fill_value_beyond_the_type_is_none) {
  using suture::detail::zarr_fill;
  EXPECT_FALSE(zarr_fill<float>(1e39));
  EXPECT_FALSE(zarr_fill<suture::half>(70000));
  EXPECT_EQ(zarr_fill<float>(.1), .1f);
  EXPECT_EQ(suture::storage<suture::half>::load(*zarr_fill<suture::half>(65504)), 65504);
}

TEST(zarr, a_checksum_is_that_of_rfc_3720) {
  const std::vector<std::uint8_t> zeros(32, 0), ones(32, 255);  // its test vectors, B.4
  EXPECT_EQ(detail::crc32c(zeros), 0x8a9136aau);
  EXPECT_EQ(detail::crc32c(ones), 0x62a8ab43u);
}

TEST(zarr, parts_are_the_chunks_that_a_box_meets) {
  const zarr_reader<std::int16_t> reader({{"a", arrays / "sharded_end"}});
  EXPECT_EQ(reader.parts(0, boxes[0]), 8u);
  EXPECT_EQ(reader.parts(0, boxes[1]), 1u);
  EXPECT_EQ(reader.parts(0, {{2, 0, 4}, {2, 1, 1}}), 2u);
  EXPECT_SAYS(reader.parts(0, {{0, 0, 0}, {7, 1, 1}}), "zarr_reader: a: box: expected voxels within");
  EXPECT_SAYS(reader.channels(1), "zarr_reader: index: expected a case below 1, got 1");
}

TEST(zarr, a_case_of_a_store_has_its_grid) {
  const zarr_store_case found = read_store_case(arrays / "case");
  EXPECT_EQ(found.image.name, "case");
  ASSERT_TRUE(found.labels.has_value());
  const zarr_reader<std::int16_t> image({found.image});
  const zarr_reader<std::uint8_t> labels({*found.labels});
  const grid g = image.grid_of(0);
  EXPECT_TRUE(identical(g, labels.grid_of(0)));
  EXPECT_EQ(g.extents, shape);
  EXPECT_EQ(g.spacing, (point3{20, 10, 10}));
  EXPECT_EQ(g.origin, (point3{-7, 8, 9.5}));
  EXPECT_EQ(g.direction[1][2], -1);
  EXPECT_EQ(read(image, boxes[1])[0], value<std::int16_t>(0, 5, 6, 9));
  EXPECT_EQ(read(labels, boxes[1])[0], value<std::uint8_t>(0, 5, 6, 9));
  EXPECT_SAYS(read_store_case(arrays / "plain"), "plain: expected a case of a store, got another group");
  EXPECT_SAYS(read_store_case(arrays), "expected the zarr.json of a case, got none");
}

class damaged_zarr : public support::scratch_folder {
protected:
  fs::path copy(const std::string& name) const {
    fs::remove_all(folder / name);
    fs::copy(arrays / name, folder / name, fs::copy_options::recursive);
    return folder / name;
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  // Returns the error of reading the array after a text in zarr.json was replaced by another.
  template <class T = std::int16_t>
  std::string with(const std::string& name, const std::string& from, const std::string& to) const {
    const fs::path array = copy(name);
    std::string text = nlohmann::ordered_json::parse(text_of(array / "zarr.json")).dump();
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from << " in " << text;
    if (at == text.npos) return {};
    write(array / "zarr.json", text.replace(at, from.size(), to));
    return message([&] { read(zarr_reader<T>({{"case", array}}), boxes[0]); });
  }
  // Returns the error of reading after the bytes of a chunk were changed.
  template <class Change>
  std::string with_bytes(const std::string& name, const std::string& chunk, const Change& change) const {
    const fs::path array = copy(name);
    std::string bytes = text_of(array / chunk);
    change(bytes);
    write(array / chunk, bytes);
    return message([&] { read(zarr_reader<std::int16_t>({{"case", array}}), boxes[0]); });
  }
};

TEST_F(damaged_zarr, a_case_with_a_slope_is_refused) {
  const fs::path group = copy("case") / "zarr.json";
  nlohmann::ordered_json record = nlohmann::ordered_json::parse(text_of(group));
  auto& scaling = record["attributes"]["suture"]["scaling"];
  scaling = nullptr;
  write(group, record.dump());
  EXPECT_EQ(read_store_case(folder / "case").image.name, "case");
  scaling = {.5, 3};
  write(group, record.dump());
  EXPECT_SAYS(read_store_case(folder / "case"),
              "scaling: expected none, since voxels are read as stored, got the slope "
              "and intercept [0.5,3]. Build the store from");
}

TEST_F(damaged_zarr, metadata_of_another_kind_is_refused_by_field) {
  expect_parts(with("plain", R"("zarr_format":3)", R"("zarr_format":2)"), {"plain: zarr_format: expected 3, got 2"});
  expect_parts(with("plain", R"("node_type":"array")", R"("node_type":"group")"),
               {"node_type: expected array", "Name the array"});
  expect_parts(with("plain", R"("data_type":"int16")", R"("data_type":"uint16")"),
               {"data_type: expected int16, got uint16"});
  expect_parts(with("plain", R"("fill_value":0)", R"("fill_value":70000)"),
               {"fill_value: expected a number of type int16, got 70000"});
  expect_parts(with("plain", R"("fill_value":0)", R"("fill_value":"NaN")"),
               {"fill_value: expected a number of type int16"});
  expect_parts(with("plain", R"("name":"regular")", R"("name":"rectilinear")"), {"chunk_grid: expected regular"});
  expect_parts(with("plain", R"("name":"bytes")", R"("name":"transpose")"), {"codecs: expected bytes first"});
  expect_parts(with("plain", "little", "big"), {"codecs: expected bytes of little endian"});
  expect_parts(with<std::uint16_t>("zstd", R"("name":"zstd")", R"("name":"lzma")"),
               {"codecs: expected blosc, zstd, gzip or crc32c"});
  expect_parts(with("plain", R"("storage_transformers":[])", R"("storage_transformers":[{"name":"x"}])"),
               {"storage_transformers: expected none"});
  expect_parts(with("plain", R"("zarr_format":3)", R"("zarr_format":3,"new":{"name":"x"})"),
               {"new: expected no extension"});
  EXPECT_EQ(with("plain", R"("zarr_format":3)", R"("zarr_format":3,"new":{"must_understand":false})"), "no error");
  expect_parts(with("plain", R"("shape":[6,7,10])", R"("shape":[6,70])"), {"shape: expected 3 axes"});
  expect_parts(with("plain", R"("shape":[6,7,10])", R"("shape":[6,7,-1])"), {"shape: expected whole numbers"});
  expect_parts(with("plain", R"("chunk_shape":[3,4,5])", R"("chunk_shape":[3,4,0])"),
               {"chunk_shape: expected whole numbers"});
  expect_parts(with("plain", R"("chunk_shape":[3,4,5])", R"("chunk_shape":[100000,100000,100000])"),
               {"chunk_shape: expected at most"});
  expect_parts(with("sharded_end", R"("chunk_shape":[3,4,5])", R"("chunk_shape":[4,4,5])"),
               {"chunk_shape of sharding_indexed: expected whole chunks"});
  expect_parts(with("plain", R"("zarr_format":3)", R"("zarr_format":3,"dimension_names":["x","y","z"])"),
               {"dimension_names: expected z, y, x"});
  expect_parts(with("plain", R"("zarr_format":3)", R"("zarr_format":)"), {"zarr.json: ", "parse error"});
  expect_parts(message([&] { zarr_reader<float>({{"case", folder}}); }), {"expected an array of Zarr v3", "got none"});
  write(folder / ".zarray", "{}");
  expect_parts(message([&] { zarr_reader<float>({{"case", folder}}); }), {"expected an array of Zarr v3", "Zarr v2"});
  expect_parts(message([&] {
                 zarr_reader<std::int16_t>({{"case", arrays / "plain", {.extents = {6, 7, 9}}}});
               }),
               {"plain: shape: expected ", "as the grid says"});
}

TEST_F(damaged_zarr, damaged_chunks_are_named) {
  const auto cut = [](std::string& bytes) { bytes.resize(bytes.size() - 9); };
  const auto flip = [](std::size_t from_end) {
    return [from_end](std::string& bytes) { bytes[bytes.size() - from_end] ^= 16; };
  };
  expect_parts(with_bytes("plain", "c/1/0/1", cut),
               {"plain/c/1/0/1: chunk: expected 120 bytes of voxels, got 111. Restore it"});
  for (const char* name : {"blosc_lz4_bitshuffle", "blosc_zstd_shuffle"})
    expect_parts(with_bytes(name, "c/0/0/0", cut), {name, "c/0/0/0: chunk", "blosc"});
  expect_parts(with_bytes("sharded_end", "c/0/0/0", cut), {"c/0/0/0: index: its crc32c differs"});
  expect_parts(with_bytes("sharded_end", "c/0/0/0", flip(10)), {"c/0/0/0: index: its crc32c differs"});
  expect_parts(with_bytes("sharded_end", "c/0/0/0", flip(2)), {"c/0/0/0: index: its crc32c differs"});
  expect_parts(with_bytes("sharded_end", "c/0/0/0", [](std::string& b) { b.resize(50); }),
               {"truncated: expected an index of 8 chunks"});
  expect_parts(with_bytes("sharded_start", "c/0/0/0", cut), {"c/0/0/0: truncated"});
  expect_parts(with_bytes("tensorstore_sharded", "c/0/0/0", [](std::string& b) { b[0] ^= 1; }),
               {"chunk 0 of the shard: damaged"});
  const fs::path sums = copy("zstd_crc32c");
  std::string bytes = text_of(sums / "c/0/0/1");
  bytes[3] ^= 1;
  write(sums / "c/0/0/1", bytes);
  EXPECT_SAYS(read(zarr_reader<half>({{"case", sums}}), boxes[0]), "its crc32c differs");
  const fs::path gzip = copy("gzip");
  bytes = text_of(gzip / "c/0/0/0");
  write(gzip / "c/0/0/0", bytes.substr(0, bytes.size() / 2));
  EXPECT_SAYS(read(zarr_reader<std::int32_t>({{"case", gzip}}), boxes[0]), "damaged or truncated (gzip)");
}

TEST_F(damaged_zarr, a_missing_chunk_is_the_fill_value_or_an_error) {
  const fs::path array = copy("plain");
  fs::remove(array / "c/1/1/1");
  const auto got = read(zarr_reader<std::int16_t>({{"case", array}}), {{5, 6, 9}, {1, 1, 1}});
  EXPECT_EQ(got[0], 0);
  const zarr_reader<std::int16_t> strict({{"case", array}}, missing_chunks::are_errors);
  EXPECT_SAYS(read(strict, boxes[0]), "plain: chunk c/1/1/1: expected to be there, got nothing");
  fs::create_directories(array / "c/1/1/1");
  EXPECT_SAYS(read(zarr_reader<std::int16_t>({{"case", array}}), boxes[0]), "c/1/1/1: expected a file, got a folder");
}

}  // namespace
