// SPDX-License-Identifier: Apache-2.0
// A workspace of a test on the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace support {

// 256-byte aligned host memory.
class aligned_memory {
public:
  explicit aligned_memory(std::size_t bytes) : memory_(new std::byte[bytes + 256]) {
    void* p = memory_.get();
    std::size_t space = bytes + 256;
    std::align(256, bytes, p, space);
    span_ = {static_cast<std::byte*>(p), bytes};
  }
  std::span<std::byte> span() const { return span_; }

private:
  std::unique_ptr<std::byte[]> memory_;
  std::span<std::byte> span_;
};

}  // namespace support
