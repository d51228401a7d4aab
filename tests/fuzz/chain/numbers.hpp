// SPDX-License-Identifier: Apache-2.0
// The numbers of a case: each belongs to (seed, case, slot), whatever else is drawn, and is kept as it is written in a
// program, so that a case can be told in a few lines.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "suture/suture.hpp"

namespace fuzz {

// An interval for whatever takes two ends.
struct ends {
  float low, high;
  operator suture::interval() const { return {low, high}; }
  operator suture::value_range() const { return {low, high}; }
  operator suture::axis_ranges() const { return {low, high}; }
};
struct integer_ends {
  std::int32_t low, high;
  operator suture::integer_interval() const { return {low, high}; }
};
// An integer for fields of any integer type.
struct whole {
  std::int64_t value;
  template <std::integral T>
  operator T() const {
    return static_cast<T>(value);
  }
};

// Sizes at which something changes: one voxel, rows of 15, 16 and 17, and longer ones.
inline constexpr suture::extent3 edge_sizes[] = {{1, 1, 1},   {1, 15, 17},  {17, 1, 16}, {16, 17, 1}, {15, 16, 15},
                                                 {3, 2, 127}, {127, 3, 2},  {2, 127, 5}, {1, 1, 33},  {1, 33, 40},
                                                 {4, 5, 64},  {17, 17, 17}, {9, 16, 31}, {2, 2, 2},   {16, 16, 16},
                                                 {5, 1, 129}, {1, 64, 1},   {33, 4, 18}, {7, 8, 9},   {3, 31, 32}};

class numbers {
public:
  numbers(std::uint64_t seed, std::uint64_t number) : seed_(suture::mix64(seed * 1000003 + suture::mix64(number))) {}

  std::uint64_t bits(int slot, int part = 0) const {
    return suture::mix64(seed_ ^
                         suture::mix64(static_cast<std::uint64_t>(slot) * 64 + static_cast<std::uint64_t>(part)));
  }
  std::int64_t below(std::int64_t n, int slot, int part = 0) const {
    return static_cast<std::int64_t>((bits(slot, part) >> 11) % static_cast<std::uint64_t>(n));
  }

  float real(int slot, double low, double high) { return noted(slot, short_float(slot, 0, low, high)); }
  double wide(int slot, double low, double high) {
    const float value = short_float(slot, 0, low, high);
    note(slot, "%.9g", static_cast<double>(value));
    return static_cast<double>(value);
  }
  whole integer(int slot, std::int64_t low, std::int64_t high) {
    const std::int64_t value = low + below(high - low + 1, slot);
    note(slot, "%lld", static_cast<long long>(value));
    return {value};
  }
  bool flag(int slot) {
    const bool value = (bits(slot) & 64) != 0;
    note(slot, "%s", value ? "true" : "false");
    return value;
  }
  float probability(int slot) {
    constexpr float of[] = {1, 1, .5f, .5f, 0};
    return noted(slot, of[below(5, slot)]);
  }
  ends range(int slot, double low, double high) {
    float a = short_float(slot, 0, low, high), b = below(5, slot, 2) == 0 ? a : short_float(slot, 1, low, high);
    if (b < a) std::swap(a, b);
    note(slot, "{%sf, %sf}", decimal(a).c_str(), decimal(b).c_str());
    return {a, b};
  }
  integer_ends integers(int slot, std::int32_t low, std::int32_t high) {
    auto a = low + static_cast<std::int32_t>(below(high - low + 1, slot)),
         b = low + static_cast<std::int32_t>(below(high - low + 1, slot, 1));
    if (b < a) std::swap(a, b);
    note(slot, "{%d, %d}", a, b);
    return {a, b};
  }
  suture::interval_law law(int slot) {
    constexpr const char* names[] = {"uniform", "log_uniform", "mixture"};
    const auto n = below(3, slot);
    note(slot, "interval_law::%s", names[n]);
    return static_cast<suture::interval_law>(n);
  }
  suture::extent3 size(int slot) { return extents(slot, edge_sizes[below(std::ssize(edge_sizes), slot)]); }
  suture::extent3 small(int slot, std::int64_t low, std::int64_t high) {
    const auto one = [&](int part) { return low + below(high - low + 1, slot, part); };
    return extents(slot, {one(0), one(1), one(2)});
  }
  suture::point3 triple(int slot, double low, double high) {
    const auto one = [&](int part) { return static_cast<double>(short_float(slot, part, low, high)); };
    const suture::point3 p{one(0), one(1), one(2)};
    note(slot, "{%.9g, %.9g, %.9g}", p[0], p[1], p[2]);
    return p;
  }
  // One of several values, which are written as `names` says.
  template <class T, class... Ts>
  T one_of(int slot, std::initializer_list<const char*> names, const T& first, const Ts&... others) {
    const T all[] = {first, static_cast<T>(others)...};
    const auto n = below(static_cast<std::int64_t>(1 + sizeof...(Ts)), slot);
    note(slot, "%s", names.begin()[n]);
    return all[n];
  }

  // The text with every mark @k@ replaced by what slot k was.
  std::string written(const std::string& text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '@') {
        result += text[i];
        continue;
      }
      const std::size_t end = text.find('@', i + 1);
      const auto slot = static_cast<std::size_t>(std::stoi(text.substr(i + 1, end - i - 1)));
      result += slot < texts_.size() ? texts_[slot] : "?";
      i = end;
    }
    return result;
  }

private:
  static std::string decimal(float x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(x));
    const std::string s = text;
    return s.find_first_of(".e") == std::string::npos ? s + "." : s;
  }
  // Few digits, so that it reads well; now and then an end.
  float short_float(int slot, int part, double low, double high) const {
    const auto how = below(16, slot, part + 8);
    if (how == 0) return static_cast<float>(low);
    if (how == 1) return static_cast<float>(high);
    const double step = high - low > 50 ? 1. / 8 : 1. / 1024;
    const double value = low + (high - low) * static_cast<double>(bits(slot, part) >> 11) * 0x1p-53;
    return static_cast<float>(std::fmin(std::fmax(std::round(value / step) * step, low), high));
  }
  float noted(int slot, float value) {
    note(slot, "%sf", decimal(value).c_str());
    return value;
  }
  suture::extent3 extents(int slot, const suture::extent3& n) {
    note(slot, "{%lld, %lld, %lld}", static_cast<long long>(n[0]), static_cast<long long>(n[1]),
         static_cast<long long>(n[2]));
    return n;
  }
  template <class... Values>
  void note(int slot, const char* format, const Values&... values) {
    char text[128];
    std::snprintf(text, sizeof text, format, values...);
    const auto n = static_cast<std::size_t>(slot);
    if (texts_.size() <= n) texts_.resize(n + 1);
    texts_[n] = text;
  }

  std::uint64_t seed_;
  std::vector<std::string> texts_;
};

}  // namespace fuzz
