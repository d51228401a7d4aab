// SPDX-License-Identifier: Apache-2.0
// A request of the C ABI out of vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "suture/abi/request.hpp"

namespace suture {

// The elements of a vector, or the letters of a text, as a list of a request.
template <class Values>
abi::list list_of(const Values& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), sizeof(*values.data())};
}

struct filled {
  std::vector<double> numbers{};
  std::vector<abi::list> lists{};
  std::vector<abi::result> results{};
  std::vector<abi::bound> inputs{};
  std::vector<abi::bound> outputs{};
  abi::request r{};

  const abi::request& get() {
    r.version = abi::version;
    r.bytes = sizeof(abi::request);
    r.numbers = numbers.data();
    r.number_count = static_cast<std::int64_t>(numbers.size());
    r.lists = lists.data();
    r.list_count = static_cast<std::int64_t>(lists.size());
    r.results = results.data();
    r.result_count = static_cast<std::int64_t>(results.size());
    r.inputs = inputs.data();
    r.input_count = static_cast<std::int64_t>(inputs.size());
    r.outputs = outputs.data();
    r.output_count = static_cast<std::int64_t>(outputs.size());
    return r;
  }
};

}  // namespace suture
