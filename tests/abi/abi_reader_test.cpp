// SPDX-License-Identifier: Apache-2.0
// What crosses from Python is checked: versions, counts, sizes of elements, ranges of numbers.
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "support/abi_request.hpp"
#include "support/expect_says.hpp"
#include "support/refused_memory.hpp"
#include "suture/abi/reader.hpp"

namespace suture {
namespace {

enum class shade { light, dark };
enum class side { left = 1, right };

template <class T>
T one(std::vector<double> numbers) {
  filled f{.numbers = std::move(numbers)};
  abi::reader r(f.get(), "gamma");
  const T made = r.next<T>("range");
  r.finish();
  return made;
}

TEST(abi_reader, numbers_that_a_type_holds_pass_and_others_are_refused) {
  EXPECT_EQ(one<std::int32_t>({-2147483648.0}), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(one<std::uint8_t>({255}), 255);
  EXPECT_EQ(one<std::int64_t>({9007199254740992.0}), std::int64_t{1} << 53);
  EXPECT_EQ(one<float>({.1}), .1f);
  EXPECT_EQ(one<float>({std::numeric_limits<double>::infinity()}), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(one<bool>({1}));
  EXPECT_EQ(one<extent3>({1, 2, 3})[2], 3);
  EXPECT_FALSE(one<std::optional<std::int32_t>>({0, 7}).has_value());
  EXPECT_EQ(*one<std::optional<std::int32_t>>({1, 7}), 7);
  expect_parts(message([] { one<std::int32_t>({2147483648.0}); }),
               {"gamma: range", "from -2147483648 to 2147483647, got 2147483648"});
  expect_parts(message([] { one<std::uint16_t>({-1}); }), {"gamma: range", "whole number", "-1"});
  expect_parts(message([] { one<std::int64_t>({1.5}); }), {"whole number", "1.5"});
  expect_parts(message([] { one<std::int64_t>({std::numeric_limits<double>::quiet_NaN()}); }), {"whole number"});
  expect_parts(message([] { one<float>({1e300}); }), {"within float32", "1e+300"});
  expect_parts(message([] { one<bool>({2}); }), {"true or false", "2"});
}

TEST(abi_reader, enumerations_are_closed) {
  EXPECT_EQ(enumerators<shade>(), (std::array<std::string_view, 2>{"light", "dark"}));
  EXPECT_EQ(enumerators<side>(), (std::array<std::string_view, 2>{"left", "right"}));
  EXPECT_EQ(one<shade>({1}), shade::dark);
  EXPECT_EQ(one<side>({2}), side::right);
  expect_parts(message([] { one<shade>({2}); }), {"0 to 1", "got 2"});
  expect_parts(message([] { one<side>({0}); }), {"1 to 2", "got 0"});
}

TEST(abi_reader, a_request_ends_where_it_says) {
  filled f{.numbers = {1, 2}};
  expect_parts(message([&] { abi::reader(f.get(), "crop").next<extent3>("start"); }),
               {"crop: start", "more than 2 numbers"});
  expect_parts(message([&] {
                 abi::reader r(f.get(), "crop");
                 r.next<double>("start");
                 r.finish();
               }),
               {"crop", "expected 1 numbers", "got 2"});
  expect_parts(message([&] { abi::reader(f.get(), "crop").list<float>("starts"); }),
               {"crop: starts", "more than 0 lists"});
  expect_parts(message([&] { abi::reader(f.get(), "crop").input<float>("images"); }),
               {"crop: images", "more than 0 inputs"});
}

TEST(abi_reader, elements_have_the_size_that_they_are_read_with) {
  const std::array<float, 3> values{1, 2, 3};
  std::array<std::int64_t, 2> room{};
  filled f{.lists = {{values.data(), 3, sizeof(float)}, {nullptr, 1, sizeof(float)}, {nullptr, 0, sizeof(float)}},
           .results = {{room.data(), 2, sizeof(std::int64_t)}}};
  abi::reader r(f.get(), "histogram_shift");
  EXPECT_EQ(r.list<float>("floating")[2], 3);
  expect_parts(message([&] { abi::reader(f.get(), "histogram_shift").list<double>("floating"); }),
               {"floating", "8 bytes, got 4"});
  expect_parts(message([&] { r.list<float>("floating"); }), {"memory for 1 elements, got none"});
  EXPECT_TRUE(r.list<float>("floating").empty());
  expect_parts(message([&] { abi::reader(f.get(), "count").result<std::int64_t>("counts", 3); }),
               {"room for 3 elements, got 2"});
  EXPECT_EQ(r.result<std::int64_t>("counts").size(), 2u);
}

TEST(abi_reader, what_is_counted_has_memory) {
  const auto opened = [](auto&& change) {
    filled f;
    f.get();
    change(f.r);
    abi::reader(f.r, "crop");
  };
  EXPECT_NO_THROW(opened([](abi::request&) {}));
  expect_parts(message([&] { opened([](abi::request& r) { r.number_count = 2; }); }),
               {"crop: numbers", "memory for 2 elements, got none"});
  expect_parts(message([&] { opened([](abi::request& r) { r.samples = r.id_count = 3; }); }),
               {"crop: ids", "memory for 3 elements, got none"});
  expect_parts(message([&] { opened([](abi::request& r) { r.list_count = 1; }); }), {"crop: lists", "got none"});
  expect_parts(message([&] { opened([](abi::request& r) { r.input_count = 1; }); }), {"crop: inputs", "got none"});
  expect_parts(message([&] { opened([](abi::request& r) { r.output_count = 1; }); }), {"crop: outputs", "got none"});
  expect_parts(message([&] { opened([](abi::request& r) { r.result_count = -1; }); }),
               {"crop: results", "0 or more, got -1"});
}

TEST(abi_reader, lists_are_aligned_to_their_elements) {
  alignas(8) std::array<char, 20> memory{};
  filled f{.lists = {{memory.data() + 2, 2, 8}, {memory.data() + 2, 1, 2}, {memory.data() + 1, 0, 8}}};
  abi::reader r(f.get(), "remap");
  expect_parts(message([&] { r.list<std::int64_t>("table"); }), {"remap: table", "aligned to 8 bytes, got 0x"});
  EXPECT_EQ(r.list<std::uint16_t>("table").size(), 1u);
  EXPECT_TRUE(r.list<double>("table").empty());
}

TEST(abi_reader, a_whole_view_has_no_box) {
  std::array<float, 8> data{};
  const abi::array boxed{data.data(), {1, 2, 4}, {8, 4, 1}, 1,         8,
                         {0, 1, 0},   {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  filled f{.inputs = {{&boxed, 1, 0}}};
  f.r.samples = 1;
  const auto views = abi::reader(f.get(), "window").input<float>("images");
  EXPECT_SAYS(check(views[0], {"window"}),
              "window: box: expected voxels within the extents (1, 2, 4), got (0, 0, 0) voxels from (0, 1, 0)");
}

TEST(abi_reader, another_version_is_refused) {
  filled f;
  f.get();
  f.r.version = abi::version + 1;
  expect_parts(message([&] { abi::reader(f.r, "window"); }), {"window: request", "expected version", "cache"});
}

TEST(abi_reader, arrays_are_as_many_as_samples) {
  std::array<float, 8> data{};
  const abi::array one_view{data.data(), {1, 2, 2}, {4, 2, 1}, 1,         4,
                            {},          {},        {1, 1, 1}, {0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  filled f{.inputs = {{&one_view, 1, 16}}};
  f.r.samples = 2;
  const auto views = abi::reader(f.get(), "window").input<float>("images");
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[1].data, data.data() + 4);
  f.r.samples = 3;
  f.inputs[0].count = 2;
  expect_parts(message([&] { abi::reader(f.get(), "window").input<float>("images"); }),
               {"window: images", "expected 3 arrays, got 2"});
}

TEST(abi_guarded, no_exception_leaves_a_module) {
  EXPECT_EQ(abi::guarded([] {}), 0);
  EXPECT_EQ(abi::guarded([] { fail({"crop"}, "too large"); }), 1);
  EXPECT_EQ(abi::last_error(), "suture: crop: too large");
  EXPECT_EQ(abi::guarded([] { throw std::out_of_range("beyond the list"); }), 2);
  EXPECT_EQ(abi::last_error(), "beyond the list");
  EXPECT_EQ(abi::guarded([] { throw 7; }), 2);
  EXPECT_EQ(abi::last_error(), "suture: an exception that is no std::exception");
}

TEST(abi_guarded, an_error_without_memory_for_its_message_stays_one) {
  const error known(std::string(500, 'e'));
  abi::last_error() = {};
  abi::last_error().shrink_to_fit();
  int status = 0;
  {
    const support::refused_memory none;
    status = abi::guarded([&] { throw known; });  // what is thrown has memory of its own
  }
  EXPECT_EQ(status, 1);
  EXPECT_EQ(abi::last_error(), "no memory left");
}

}  // namespace
}  // namespace suture
