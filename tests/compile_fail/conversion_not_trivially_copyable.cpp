// expect: suture: a label conversion must be trivially copyable
// SPDX-License-Identifier: Apache-2.0
#include <suture/suture.hpp>

struct by_table {
  std::vector<std::int32_t> table;
  std::int32_t operator()(std::int32_t label) const { return table[static_cast<std::size_t>(label)]; }
};

auto bound(suture::view<const std::uint8_t> in, suture::view<std::uint8_t> out) {
  return suture::labels(in, out, by_table{});
}
