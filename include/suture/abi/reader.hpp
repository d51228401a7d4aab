// SPDX-License-Identifier: Apache-2.0
// `reader` reads the numbers, lists, views and results of a request in order and checks them: counts, memory, sizes of
// elements, ranges of numbers. It refuses a number that the wanted type cannot represent and reads nothing beyond what
// the request has.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../base/enumerators.hpp"
#include "request.hpp"

namespace suture::abi {

class reader;

// The greatest number of threads that a request may ask for. OpenMP ends the process if it cannot start as many.
inline constexpr std::int32_t most_threads = 1024;

// Specializations read a T from the numbers and lists of a request by `static T read(reader&, std::string_view
// parameter)`. Errors name the parameter.
template <class T>
struct codec;

// Reads the request of one call, which it does not own. Numbers, lists, inputs, outputs and results are each read in
// order. Error messages name `operation`.
class reader {
public:
  reader(const abi::request& r, std::string_view operation) : r_(&r), where_{operation} {
    require(r.version == abi::version && r.bytes == sizeof(abi::request), where_, "request: expected version ",
            abi::version, " of ", sizeof(abi::request), " bytes, got version ", r.version, " of ", r.bytes,
            ". Clear the cache of compiled chains, or install suture again");
    require(r.id_count == 0 || r.id_count == r.samples, where_, "ids: expected ", r.samples, ", got ", r.id_count);
    require(r.samples >= 0, where_, "samples: expected 0 or more, got ", r.samples);
    check_memory("numbers", r.numbers, r.number_count);
    check_memory("lists", r.lists, r.list_count);
    check_memory("inputs", r.inputs, r.input_count);
    check_memory("outputs", r.outputs, r.output_count);
    check_memory("results", r.results, r.result_count);
    check_memory("ids", r.sample_ids, r.id_count);
    require(r.threads >= 0 && r.threads <= most_threads, where_, "threads: expected 0, for all, to ", most_threads,
            ", got ", r.threads);
  }

  // Sets the operation that the following error messages name.
  void begin(std::string_view operation) { where_ = {operation}; }

  const abi::request& request() const { return *r_; }
  const site& where() const { return where_; }

  // Returns the next number without converting it.
  double number(std::string_view parameter) {
    require(number_ < r_->number_count, where_, parameter, ": expected more than ", r_->number_count, " numbers");
    return r_->numbers[number_++];
  }
  // Reads the next value of type T.
  template <class T>
  T next(std::string_view parameter) {
    return codec<T>::read(*this, parameter);
  }
  // Returns the next list, whose elements must have the size of T.
  template <class T>
  std::span<const T> list(std::string_view parameter) {
    require(list_ < r_->list_count, where_, parameter, ": expected more than ", r_->list_count, " lists");
    const abi::list& l = r_->lists[list_++];
    check<T>(l.data, l.count, l.size, parameter);
    return {static_cast<const T*>(l.data), static_cast<std::size_t>(l.count)};
  }
  // Returns the memory of the next result, which must have room for exactly `count` elements of T.
  template <class T>
  std::span<T> result(std::string_view parameter, std::int64_t count) {
    require(result_ < r_->result_count, where_, parameter, ": expected more than ", r_->result_count, " results");
    const abi::result& l = r_->results[result_++];
    check<T>(l.data, l.count, l.size, parameter);
    require(l.count == count, where_, parameter, ": expected room for ", count, " elements, got ", l.count);
    return {static_cast<T*>(l.data), static_cast<std::size_t>(l.count)};
  }
  // Returns the memory of the next result, however many elements of T it has room for.
  template <class T>
  std::span<T> result(std::string_view parameter) {
    require(result_ < r_->result_count, where_, parameter, ": expected more than ", r_->result_count, " results");
    return result<T>(parameter, r_->results[result_].count);
  }
  // Returns the views of the next input, one for each sample.
  template <class T>
  std::vector<view<const T>> input(std::string_view parameter) {
    require(input_ < r_->input_count, where_, parameter, ": expected more than ", r_->input_count, " inputs");
    return views<const T>(r_->inputs[input_++], parameter);
  }
  // Returns the views of the next output for functions that read it before they write it.
  template <class T>
  std::vector<view<T>> inout(std::string_view parameter) {
    require(output_ < r_->output_count, where_, parameter, ": expected more than ", r_->output_count, " outputs");
    return views<T>(r_->outputs[output_++], parameter);
  }
  template <class T>
  std::vector<view<T>> output(std::string_view parameter) {
    return inout<T>(parameter);
  }
  std::span<const std::uint64_t> ids() const { return {r_->sample_ids, static_cast<std::size_t>(r_->id_count)}; }
  std::int64_t results_left() const { return r_->result_count - result_; }

  // Throws if the request has more than was read.
  void finish() const {
    require(number_ == r_->number_count && list_ == r_->list_count && input_ == r_->input_count &&
                output_ == r_->output_count && result_ == r_->result_count,
            where_, "request: expected ", number_, " numbers, ", list_, " lists, ", input_, " inputs, ", output_,
            " outputs and ", result_, " results, got ", r_->number_count, ", ", r_->list_count, ", ", r_->input_count,
            ", ", r_->output_count, " and ", r_->result_count);
  }

private:
  template <class T>
  void check(const void* data, std::int64_t count, std::int64_t size, std::string_view parameter) const {
    require(count == 0 || size == static_cast<std::int64_t>(sizeof(T)), where_, parameter, ": expected elements of ",
            sizeof(T), " bytes, got ", size);
    check_memory(parameter, static_cast<const T*>(data), count);
  }
  // Checks an address of `count` elements; without elements it may be anything.
  template <class T>
  void check_memory(std::string_view parameter, const T* data, std::int64_t count) const {
    require(count >= 0, where_, parameter, ": expected 0 or more, got ", count);
    require(count == 0 || data != nullptr, where_, parameter, ": expected memory for ", count, " elements, got none");
    require(count == 0 || reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0, where_, parameter,
            ": expected memory aligned to ", alignof(T), " bytes, got ", static_cast<const void*>(data));
  }
  template <class T>
  std::vector<view<T>> views(const bound& all, std::string_view parameter) const {
    require(all.count == 1 || all.count == r_->samples, where_, parameter, ": expected ", r_->samples, " arrays, got ",
            all.count);
    require(all.arrays != nullptr || r_->samples == 0, where_, parameter, ": expected arrays, got none");
    std::vector<view<T>> made;
    made.reserve(static_cast<std::size_t>(r_->samples));
    for (std::int64_t i = 0; i < r_->samples; ++i) {
      const array& a = all.arrays[all.count == 1 ? 0 : i];
      auto* const data = static_cast<char*>(a.data) + (all.count == 1 ? i * all.step : 0);
      made.push_back(
          {reinterpret_cast<T*>(data),
           grid_of(a),
           {a.stride[0], a.stride[1], a.stride[2]},
           a.channels,
           a.channel_stride,
           {{a.box_first[0], a.box_first[1], a.box_first[2]}, {a.box_size[0], a.box_size[1], a.box_size[2]}}});
      suture::detail::place_first_voxel(made.back(), reinterpret_cast<std::uintptr_t>(data));
    }
    return made;
  }

  const abi::request* r_;
  site where_;
  std::int64_t number_ = 0, list_ = 0, input_ = 0, output_ = 0, result_ = 0;
};

template <>
struct codec<double> {
  static double read(reader& r, std::string_view parameter) { return r.number(parameter); }
};
// Rounds to the nearest float. A finite number beyond the range of float is refused; infinities and NaN pass.
template <>
struct codec<float> {
  static float read(reader& r, std::string_view parameter) {
    const double given = r.number(parameter);
    const auto made = static_cast<float>(given);
    require(std::isfinite(made) || !std::isfinite(given), r.where(), parameter,
            ": expected a number within float32, got ", given);
    return made;
  }
};
template <>
struct codec<bool> {
  static bool read(reader& r, std::string_view parameter) {
    const double given = r.number(parameter);
    require(given == 0 || given == 1, r.where(), parameter, ": expected true or false, got ", given);
    return given == 1;
  }
};
// Reads a whole number that the type can represent, of magnitude at most 2^53, up to which doubles represent all.
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) struct codec<T> {
  static T read(reader& r, std::string_view parameter) {
    constexpr double most = 9007199254740992.0;
    const double low = std::max(static_cast<double>(std::numeric_limits<T>::min()), -most);
    const double high = std::min(static_cast<double>(std::numeric_limits<T>::max()), most);
    const double given = r.number(parameter);
    require(given >= low && given <= high && given == std::floor(given), r.where(), parameter,
            ": expected a whole number from ", low, " to ", high, ", got ", given);
    return static_cast<T>(given);
  }
};
template <class T>
requires std::is_enum_v<T>
struct codec<T> {
  static T read(reader& r, std::string_view parameter) {
    constexpr auto names = enumerators<T>();
    constexpr int first = suture::detail::first_enumerator<T>;
    const int given = r.next<std::int32_t>(parameter);
    require(given >= first && given < first + static_cast<int>(names.size()), r.where(), parameter,
            ": expected a value from ", first, " to ", first + static_cast<int>(names.size()) - 1, ", got ", given);
    return static_cast<T>(given);
  }
};
// Reads a flag, 1 if there is a value, and then the value, or one number that is ignored.
template <class T>
struct codec<std::optional<T>> {
  static std::optional<T> read(reader& r, std::string_view parameter) {
    const bool is_there = r.next<bool>(parameter);
    const double ignored = is_there ? 0 : r.number(parameter);
    static_cast<void>(ignored);
    return is_there ? std::optional<T>(r.next<T>(parameter)) : std::nullopt;
  }
};
// Reads three values in the order (z, y, x).
template <class T>
struct codec<vec3<T>> {
  static vec3<T> read(reader& r, std::string_view parameter) {
    vec3<T> v{};
    for (int k = 0; k < 3; ++k) v[k] = r.next<T>(parameter);
    return v;
  }
};
// Reads the elements row by row.
template <>
struct codec<matrix3> {
  static matrix3 read(reader& r, std::string_view parameter) {
    matrix3 m{};
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) m[i][j] = r.next<double>(parameter);
    return m;
  }
};
// Reads extents, spacing, origin and direction.
template <>
struct codec<suture::grid> {
  static suture::grid read(reader& r, std::string_view parameter) {
    suture::grid g;
    g.extents = r.next<extent3>(parameter);
    g.spacing = r.next<point3>(parameter);
    g.origin = r.next<point3>(parameter);
    g.direction = r.next<matrix3>(parameter);
    return g;
  }
};
template <class T>
struct codec<std::span<const T>> {
  static std::span<const T> read(reader& r, std::string_view parameter) { return r.list<T>(parameter); }
};

}  // namespace suture::abi

// Defines the functions that every module has.
#define SUTURE_ABI_MODULE                                                    \
  SUTURE_ABI std::uint32_t suture_version() { return suture::abi::version; } \
  SUTURE_ABI const char* suture_error() { return suture::abi::last_error().c_str(); }

// Defines a module of one function of a request, suture_call.
#define SUTURE_ABI_FUNCTION(...)                              \
  SUTURE_ABI_MODULE                                           \
  SUTURE_ABI int suture_call(const suture::abi::request* r) { \
    return suture::abi::guarded([&] { __VA_ARGS__(*r); });    \
  }
