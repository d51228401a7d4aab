// expect: suture: T has a member that T::parameters does not list: add it, with left_out() if nobody sets it
// SPDX-License-Identifier: Apache-2.0
#include <suture/abi/parameters.hpp>
#include <suture/suture.hpp>

struct shift {
  float by = 0;
  float of[3] = {};

  static constexpr std::string_view name = "shift";
  static constexpr auto parameters = suture::named("by", &shift::by);

  float operator()(float x) const { return x + by + of[0]; }
};

shift read(suture::abi::reader& r) { return r.next<shift>(""); }
