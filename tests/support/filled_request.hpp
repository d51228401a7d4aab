// SPDX-License-Identifier: Apache-2.0
// A request filled from vectors, as a caller of another language fills it.
#pragma once

#include <span>
#include <vector>

#include "suture/abi/request.hpp"

namespace suture {

struct filled_request {
  std::vector<double> numbers{};
  std::vector<abi::list> lists{};
  std::vector<abi::result> results{};
  std::vector<abi::bound> inputs{};
  std::vector<abi::bound> outputs{};
  std::vector<std::uint64_t> ids{};
  std::int64_t samples = 0;
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
    r.samples = samples;
    r.sample_ids = ids.data();
    r.id_count = static_cast<std::int64_t>(ids.size());
    return r;
  }
};

// The memory of a list or a result.
template <class Values>
abi::result room_of(Values& values) {
  const std::span all(values);
  return {all.data(), static_cast<std::int64_t>(all.size()), sizeof(all[0])};
}
template <class Values>
abi::list list_of(const Values& values) {
  const std::span all(values);
  return {all.data(), static_cast<std::int64_t>(all.size()), sizeof(all[0])};
}

// One array of these extents, dense, channels slowest.
template <class T>
abi::array array_of(std::vector<T>& data, const extent3& n, std::int64_t channels = 1) {
  const std::int64_t voxels = n[0] * n[1] * n[2];
  return {data.data(), {n[0], n[1], n[2]}, {n[1] * n[2], n[2], 1},     channels, voxels,
          {1, 1, 1},   {0, 0, 0},          {1, 0, 0, 0, 1, 0, 0, 0, 1}};
}

}  // namespace suture
