// SPDX-License-Identifier: Apache-2.0
// A list of at most N elements, stored in the object itself, so that a struct with such a list is copied to the device
// as a whole.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "error.hpp"

namespace suture {

template <class T, std::size_t N>
class short_list {
public:
  static constexpr std::size_t capacity = N;

  constexpr short_list() = default;
  constexpr short_list(std::initializer_list<T> elements) {
    for (const T& e : elements) push_back(e);
  }
  explicit constexpr short_list(std::span<const T> elements) {
    for (const T& e : elements) push_back(e);
  }

  constexpr void push_back(const T& element) {
    if (size_ == N) fail({"short_list"}, "more than ", N, " elements");
    elements_[size_++] = element;
  }
  constexpr std::size_t size() const { return size_; }
  constexpr const T* begin() const { return elements_; }
  constexpr const T* end() const { return elements_ + size_; }
  constexpr const T& operator[](std::size_t i) const { return elements_[i]; }

private:
  T elements_[N]{};
  std::size_t size_ = 0;
};

}  // namespace suture
