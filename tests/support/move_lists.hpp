// SPDX-License-Identifier: Apache-2.0
// Lists of points or boxes, moved the way that their results say.
#pragma once

#include <suture/points/points.hpp>

#include <span>

namespace support {

template <class Executor, class Plan, class T, class Result>
void move_lists(const Executor& exec, const Plan& plan, const suture::ragged<T>& lists, std::span<Result> results) {
  if constexpr (suture::detail::goes_to_source<Result>)
    to_source(exec, plan, lists, results);
  else
    to_output(exec, plan, lists, results);
}

}  // namespace support
