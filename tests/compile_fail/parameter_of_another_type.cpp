// expect: suture: the parameter Member of T has a type that is not described
// SPDX-License-Identifier: Apache-2.0
#include <suture/abi/parameters.hpp>
#include <suture/suture.hpp>

struct shift {
  long double by = 0;

  static constexpr std::string_view name = "shift";
  static constexpr auto parameters = suture::named("by", &shift::by);

  float operator()(float x) const { return x + static_cast<float>(by); }
};

shift read(suture::abi::reader& r) { return r.next<shift>(""); }
