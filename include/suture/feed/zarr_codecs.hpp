// SPDX-License-Identifier: Apache-2.0
// Decodes the chunks of a Zarr array: blosc, zstd, gzip and crc32c. Needs c-blosc, zstd and zlib.
#pragma once

#include <blosc.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../base/error.hpp"

namespace suture::detail {

enum class zarr_codec { blosc, zstd, gzip, crc32c };

using byte_span = std::span<const std::uint8_t>;

// CRC-32C (Castagnoli) by RFC 3720: the polynomial 0x1edc6f41, reflected.
inline std::uint32_t crc32c(byte_span bytes) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0u);
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t c = ~0u;
  for (const std::uint8_t b : bytes) c = c >> 8 ^ table[(c ^ b) & 0xff];
  return ~c;
}

// Removes the checksum from the end; returns false if it differs from that of the bytes, or if there are fewer than
// four.
inline bool without_crc32c(byte_span& bytes) {
  if (bytes.size() < 4) return false;
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);
  bytes = bytes.first(bytes.size() - 4);
  return stored == crc32c(bytes);
}

// Each decoder fills `to` from its beginning and never beyond its end. It returns the number of bytes written, or 0
// with the reason in `problem`. `to` may be longer than the data.
inline std::size_t decode_blosc(byte_span from, std::span<std::uint8_t> to, std::string& problem) {
  std::size_t bytes = 0;
  if (from.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(from.data(), from.size(), &bytes) < 0)
    return problem = "damaged or truncated (blosc)", 0;
  if (bytes > to.size())
    return problem =
               "expected at most " + std::to_string(to.size()) + " bytes, blosc announces " + std::to_string(bytes),
           0;
  const int got = blosc_decompress_ctx(from.data(), to.data(), to.size(), 1);
  if (got < 0 || static_cast<std::size_t>(got) != bytes) {
    const char* library = blosc_cbuffer_complib(from.data());
    problem = "damaged (blosc), or compressed by " + std::string(library ? library : "a codec") +
              ", which this c-blosc was built without";
    return 0;
  }
  return bytes;
}

inline std::size_t decode_zstd(byte_span from, std::span<std::uint8_t> to, std::string& problem) {
  struct free_context {
    void operator()(ZSTD_DCtx* c) const { ZSTD_freeDCtx(c); }
  };
  thread_local const std::unique_ptr<ZSTD_DCtx, free_context> context(ZSTD_createDCtx());
  const std::size_t got =
      context ? ZSTD_decompressDCtx(context.get(), to.data(), to.size(), from.data(), from.size()) : 0;
  if (!context || ZSTD_isError(got))
    return problem =
               "damaged or truncated (zstd: " + std::string(context ? ZSTD_getErrorName(got) : "out of memory") + ")",
           0;
  return got;
}

inline std::size_t decode_gzip(byte_span from, std::span<std::uint8_t> to, std::string& problem) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return problem = "out of memory (gzip)", 0;
  stream.next_in = const_cast<Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = to.data();
  stream.avail_out = static_cast<uInt>(to.size());
  const int status = inflate(&stream, Z_FINISH);
  const std::size_t got = to.size() - stream.avail_out;
  const bool whole = status == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) return problem = "damaged or truncated (gzip)", 0;
  return got;
}

// Scratch memory that one thread keeps for the chunks it decodes.
class decode_scratch {
public:
  std::span<std::uint8_t> of(std::size_t bytes) {
    if (memory_.size() < bytes) memory_.resize(bytes);
    return {memory_.data(), bytes};
  }

private:
  std::vector<std::uint8_t> memory_;
};

// Undoes the codecs, which are listed in the order of encoding, and returns exactly `bytes` bytes. They lie in `from`,
// if no codec but crc32c is listed, or in memory of the calling thread that its next call overwrites. `problem` must be
// empty on entry; if it is not empty afterwards it holds the reason, and the result is empty.
inline byte_span decode(std::span<const zarr_codec> codecs, byte_span from, std::size_t bytes, std::string& problem) {
  thread_local std::array<decode_scratch, 2> scratch;
  std::size_t turn = 0;
  for (std::size_t i = codecs.size(); i-- > 0;) {
    if (codecs[i] == zarr_codec::crc32c) {
      if (!without_crc32c(from))
        return problem = "its crc32c differs from that of its bytes, or is missing", byte_span{};
      continue;
    }
    // Data that is compressed or checksummed twice may be a little longer between the two steps.
    const std::span<std::uint8_t> to = scratch[turn++ % 2].of(i == 0 ? bytes : bytes + bytes / 2 + 65536);
    const std::size_t got = codecs[i] == zarr_codec::blosc  ? decode_blosc(from, to, problem)
                            : codecs[i] == zarr_codec::zstd ? decode_zstd(from, to, problem)
                                                            : decode_gzip(from, to, problem);
    if (!problem.empty()) return {};
    from = to.first(got);
  }
  if (from.size() != bytes)
    problem = "expected " + std::to_string(bytes) + " bytes of voxels, got " + std::to_string(from.size());
  return problem.empty() ? from : byte_span{};
}

}  // namespace suture::detail
