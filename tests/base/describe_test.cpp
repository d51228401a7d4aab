// SPDX-License-Identifier: Apache-2.0
// What base/describe.hpp says of a struct: kinds by type, defaults, and whether the list of parameters is complete.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "suture/abi/parameters.hpp"
#include "suture/ops/filter/coarse_shuffle.hpp"
#include "suture/ops/geometry/rot90.hpp"
#include "suture/ops/label/regions.hpp"
#include "suture/ops/stain/color_jitter.hpp"
#include "suture/ops/value/gamma.hpp"

namespace suture {
namespace {

enum class mode { soft, hard };

// As operations are written: every kind of member, of which some have no default, one follows and one is chosen.
struct complete {
  integer_interval steps;
  float gain;
  float weights[3] = {1, 2, 3};
  std::array<float, 12> long_list;
  std::int32_t count;
  mode how = mode::hard;
  std::span<const float> given = {};
  std::optional<std::int32_t> ignore = {};
  std::int64_t follows = 0;

  static constexpr std::string_view name = "complete";
  static constexpr auto parameters =
      named("steps", required(&complete::steps), "gain", required(&complete::gain), "weights", &complete::weights,
            "long_list", required(first_of(&complete::long_list, &complete::count)), "how", &complete::how, "given",
            &complete::given, "ignore", &complete::ignore, "follows", left_out(&complete::follows));
};
static_assert(check_described<complete>());

template <class T>
using listed = decltype(detail::initializers_of(T::parameters));

template <class Member>
struct one_more {
  float gain = 1;
  Member more;
  static constexpr auto parameters = named("gain", &one_more::gain);
};
struct wrong_order {
  float gain = 1;
  bool on = true;
  static constexpr auto parameters = named("on", &wrong_order::on, "gain", &wrong_order::gain);
};

// A member that is not listed is seen whatever it is: with and without a default, an array, a class.
TEST(describe, a_member_that_is_not_listed_is_seen) {
  EXPECT_FALSE(listed<complete>::make_with_one_more<complete>);
  EXPECT_TRUE(listed<one_more<float>>::make_with_one_more<one_more<float>>);
  EXPECT_TRUE(listed<one_more<float[3]>>::make_with_one_more<one_more<float[3]>>);
  EXPECT_TRUE((listed<one_more<std::array<float, 40>>>::make_with_one_more<one_more<std::array<float, 40>>>));
  EXPECT_TRUE(listed<one_more<interval>>::make_with_one_more<one_more<interval>>);
  EXPECT_TRUE(listed<one_more<std::optional<int>>>::make_with_one_more<one_more<std::optional<int>>>);
  EXPECT_TRUE(listed<one_more<std::span<const float>>>::make_with_one_more<one_more<std::span<const float>>>);
  EXPECT_TRUE(listed<one_more<mode>>::make_with_one_more<one_more<mode>>);
  EXPECT_FALSE(listed<wrong_order>::make<wrong_order>);
  EXPECT_TRUE(listed<complete>::make<complete>);
}

std::string kinds(const std::vector<parameter_kind>& all) {
  std::string text;
  for (const auto& k : all)
    text += std::string(k.name) + std::string(k.of) + (k.count > 0 ? std::to_string(k.count) : "") +
            (k.capacity > 0 ? "<=" + std::to_string(k.capacity) : "") + ' ';
  return text;
}
template <class T>
std::string kinds_of() {
  std::vector<parameter_kind> all;
  for_each_parameter<T>(
      [&]<class Member>(std::string_view, const Member&) { all.push_back(kind_of_parameter<Member>()); });
  return kinds(all);
}

TEST(describe, a_kind_follows_from_the_type) {
  EXPECT_EQ(kinds_of<complete>(),
            "integer_interval float32 floats:3 float_list<=12 choice:mode given_floats optional_int int64 ");
  EXPECT_EQ(kinds_of<random_gamma>(), "interval interval choice:interval_law float32 ");
  EXPECT_EQ(kinds_of<rot90>(), "axis_pair int32 ");
  EXPECT_EQ(kinds_of<regions>(), "regions64<=32 optional_int ");
  EXPECT_EQ(kinds_of<color_jitter>(),
            "float32 float32 float32 float32 float32 results:moments choices:color_step4 float32 ");
  EXPECT_TRUE(detail::kind_of_type<long double>().name.empty());
  EXPECT_TRUE((detail::kind_of_type<std::pair<int, int>>().name.empty()));
}

TEST(describe, defaults_are_those_of_the_struct) {
  const auto c = with_defaults<complete>();
  EXPECT_EQ(c.steps.low, 0);
  EXPECT_EQ(c.gain, 0);
  EXPECT_EQ(c.weights[2], 3);
  EXPECT_EQ(c.how, mode::hard);
  EXPECT_EQ(with_defaults<random_gamma>().range.high, 1.5f);
  EXPECT_EQ(with_defaults<random_coarse_shuffle>().probability, 1);
}

TEST(describe, notes_are_read_back) {
  std::vector<std::string_view> needed, multiplied, without;
  const auto look = [&]<class T>(const T*) {
    for_each_parameter<T>([&]<class Member>(std::string_view name, const Member&) {
      if (is_noted<Member, note::required>) needed.push_back(name);
      if (is_noted<Member, note::multiplies>) multiplied.push_back(name);
      if (is_noted<Member, note::left_out>) without.push_back(name);
    });
  };
  look(static_cast<const complete*>(nullptr));
  look(static_cast<const random_gamma*>(nullptr));
  look(static_cast<const gamma*>(nullptr));
  look(static_cast<const coarse_shuffle*>(nullptr));
  EXPECT_EQ(needed, (std::vector<std::string_view>{"steps", "gain", "long_list", "exponent", "holes"}));
  EXPECT_EQ(multiplied, (std::vector<std::string_view>{"range"}));
  EXPECT_EQ(without, (std::vector<std::string_view>{"follows", "field"}));
}

}  // namespace
}  // namespace suture
