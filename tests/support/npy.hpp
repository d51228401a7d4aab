// SPDX-License-Identifier: Apache-2.0
// Reader for NumPy .npy files, version 1.0, C order, little-endian: <f4 <f8 <i2 <i4 <i8 <u2 <u4 <u8 |i1 |u1 |b1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace support {

template <class T>
struct array {
  std::vector<std::int64_t> shape;
  std::vector<T> values;

  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
};

namespace npy_detail {

[[noreturn]] inline void fail(const std::filesystem::path& file, const std::string& message) {
  throw std::runtime_error(file.string() + ": " + message);
}

// The text between the key's value delimiters: 'descr': '<f4' gives <f4, 'shape': (2, 3) gives "2, 3".
inline std::string field(const std::string& header, const std::string& key, char open, char close,
                         const std::filesystem::path& file) {
  const std::size_t at = header.find("'" + key + "'");
  if (at == std::string::npos) fail(file, "header has no '" + key + "'");
  const std::size_t begin = header.find(open, header.find(':', at));
  if (begin == std::string::npos) fail(file, "value of '" + key + "' is not delimited");
  const std::size_t end = header.find(close, begin + 1);
  if (end == std::string::npos) fail(file, "value of '" + key + "' does not end");
  return header.substr(begin + 1, end - begin - 1);
}

template <class T>
bool is_negative(T value) {
  if constexpr (std::is_unsigned_v<T>)
    return false;
  else
    return value < T{};
}

// Values must survive the conversion: a test that reads int32 labels as uint8 wants to know when they do not fit.
template <class To, class From>
To convert(From value, const std::filesystem::path& file) {
  const To result = static_cast<To>(value);
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(value) && std::is_floating_point_v<To>) return result;
  }
  if (static_cast<From>(result) != value || is_negative(result) != is_negative(value))
    fail(file, "value " + std::to_string(value) + " is not representable in the requested type");
  return result;
}

template <class Stored, class T>
std::vector<T> decode(const std::vector<char>& bytes, std::size_t offset, std::size_t count,
                      const std::filesystem::path& file) {
  if (bytes.size() - offset != count * sizeof(Stored))
    fail(file, "expected " + std::to_string(count * sizeof(Stored)) + " data bytes, found " +
                   std::to_string(bytes.size() - offset));
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + offset + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert<T>(stored, file);
  }
  return values;
}

}  // namespace npy_detail

namespace npy_detail {

struct contents {
  std::vector<char> bytes;
  std::size_t data;  // where the elements begin
  std::string header;
};

inline contents read_contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(file, "cannot be opened");
  std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) fail(file, "is not an .npy file");
  if (bytes[6] != 1 || bytes[7] != 0) fail(file, "has an .npy version other than 1.0");
  const std::size_t length =
      static_cast<unsigned char>(bytes[8]) + std::size_t{256} * static_cast<unsigned char>(bytes[9]);
  const std::size_t data = 10 + length;
  if (bytes.size() < data) fail(file, "header is cut short");
  std::string header(bytes.data() + 10, length);
  if (header.find("'fortran_order': False") == std::string::npos) fail(file, "is not in C order");
  return {std::move(bytes), data, std::move(header)};
}

}  // namespace npy_detail

// The type of the stored elements, such as "<f4".
inline std::string npy_type(const std::filesystem::path& file) {
  return npy_detail::field(npy_detail::read_contents(file).header, "descr", '\'', '\'', file);
}

// Reads the array, converting to T; an element that T cannot hold exactly is an error (except NaN).
template <class T>
array<T> read_npy(const std::filesystem::path& file) {
  using npy_detail::fail;
  const auto [bytes, data, header] = npy_detail::read_contents(file);

  array<T> result;
  std::size_t count = 1;
  const std::string shape = npy_detail::field(header, "shape", '(', ')', file);
  for (std::size_t at = 0; at < shape.size();) {
    const std::size_t comma = std::min(shape.find(',', at), shape.size());
    const std::string number = shape.substr(at, comma - at);
    if (number.find_first_of("0123456789") != std::string::npos) {
      result.shape.push_back(std::stoll(number));
      count *= static_cast<std::size_t>(result.shape.back());
    }
    at = comma + 1;
  }

  const std::string type = npy_detail::field(header, "descr", '\'', '\'', file);
  const auto read = [&, &stored_bytes = bytes, first = data]<class Stored>(Stored) {
    result.values = npy_detail::decode<Stored, T>(stored_bytes, first, count, file);
  };
  if (type == "<f4") {
    read(float{});
  } else if (type == "<f8") {
    read(double{});
  } else if (type == "|i1") {
    read(std::int8_t{});
  } else if (type == "<i2") {
    read(std::int16_t{});
  } else if (type == "<i4") {
    read(std::int32_t{});
  } else if (type == "<i8") {
    read(std::int64_t{});
  } else if (type == "|u1" || type == "|b1") {
    read(std::uint8_t{});
  } else if (type == "<u2") {
    read(std::uint16_t{});
  } else if (type == "<u4") {
    read(std::uint32_t{});
  } else if (type == "<u8") {
    read(std::uint64_t{});
  } else {
    fail(file, "data type '" + type + "' is not supported");
  }
  return result;
}

}  // namespace support
