// SPDX-License-Identifier: Apache-2.0
// A plan as JSON, and back: the draws of every sample, to be read, stored, edited and run again. Not part of
// suture.hpp: it needs nlohmann/json 3.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../plan/plan.hpp"
#include "json_text.hpp"
#include "json_value.hpp"

namespace suture {

namespace detail {

inline constexpr std::string_view replay_format = "suture plan";
inline constexpr int replay_format_version = 1;

inline std::string library_version() {
  return std::to_string(SUTURE_VERSION_MAJOR) + '.' + std::to_string(SUTURE_VERSION_MINOR) + '.' +
         std::to_string(SUTURE_VERSION_PATCH);
}

// Lists the name of every operation, and the kind of random ones.
template <class Op>
json signature_of() {
  json j;
  j["name"] = name_of<Op>();
  if constexpr (random_operation<Op>) j["kind"] = Op::kind;
  return j;
}
template <class... Ops>
json signature(const chain<Ops...>*) {
  return json::array({signature_of<Ops>()...});
}

// Counts the recorded operations, each in a step, before operation I.
template <std::size_t I, class... Ops>
constexpr std::size_t recorded_before(const chain<Ops...>*) {
  return count_before<I, recorded<Ops>...>;
}

// Refuses a plan of another pipeline, or of another version of the library.
inline void check_signature(const json& j, const json& own, const site& where) {
  std::vector<std::string_view> fields{"format", "format_version", "library_version", "pipeline",
                                       "seed",   "epoch",          "evaluation",      "samples"};
  if (j.contains("image")) fields.push_back("image");
  check_members(j, fields, where, "the plan");
  require(j["format"] == replay_format, where, "format ", shown(j["format"]), " is not \"", replay_format, '"');
  require(j["format_version"] == replay_format_version, where, "format_version ", shown(j["format_version"]),
          ", this library reads ", replay_format_version);
  require(j["library_version"] == library_version(), where, "written by version ", shown(j["library_version"]),
          " of the library, this is ", library_version());
  const json& steps = j["pipeline"];
  require(steps.is_array(), where, "pipeline ", shown(steps), " is not a list");
  for (std::size_t i = 0; i < steps.size() && i < own.size(); ++i)
    require(steps[i] == own[i], where, "another pipeline: operation ", i, " is ", shown(steps[i]), " there and ",
            shown(own[i]), " here");
  require(steps.size() == own.size(), where, "another pipeline: ", steps.size(), " operations there and ", own.size(),
          " here");
}

// Reads the draw of operation I, or its choice, from the JSON; random fields follow from seed and sample id.
template <class Chain>
struct read_drawing {
  const json& samples;
  const std::uint64_t* ids;

  template <std::size_t I, class Drawn>
  void operator()(Drawn& drawn, std::size_t sample) const {
    using Op = element_t<I, decltype(Chain::operations)>;
    const site where{name_of<Op>(), static_cast<std::int64_t>(sample), ids};
    constexpr std::size_t step_number = recorded_before<I>(static_cast<const Chain*>(nullptr));
    const json& step = samples[sample]["steps"][step_number];
    check_members(step, {"name", "parameters"}, where, "step " + std::to_string(step_number));
    require(step["name"] == name_of<Op>(), where, "step ", step_number, " is ", shown(step["name"]));
    read(step["parameters"], drawn, where, "parameters");
  }
};

}  // namespace detail

// to_json: a plan with all that was drawn for it. Read back by plan_from_json it gives the same bits.
//   { "format": "suture plan", "format_version": 1, "library_version": "0.1.0",
//     "pipeline": [{"name": "window"}, {"name": "random_affine", "kind": 1}, ...],
//     "seed": 42, "epoch": 3, "evaluation": false,
//     "samples": [{"id": 17, "source": {"extents": ..., "spacing": ..., "origin": ..., "direction": ...},
//                  "steps": [{"name": "random_affine", "parameters": {"rotate_deg": [0, 0, 12.5], ...}},
//                            {"name": "random_gamma", "parameters": "not drawn"}, ...]}, ...] }
// Steps are the operations that are random or chosen for each sample (crop_at). Numbers are the shortest that read back
// as the same bits. What is not drawn, as the center of a window, is the pipeline's and not in the JSON; random fields
// follow from seed, epoch, id and kind. Errors: a parameter that is not finite.
template <class Chain>
nlohmann::ordered_json to_json(const planned<Chain>& plan) {
  detail::json j;
  j["format"] = detail::replay_format;
  j["format_version"] = detail::replay_format_version;
  j["library_version"] = detail::library_version();
  j["pipeline"] = detail::signature(static_cast<const Chain*>(nullptr));
  j["seed"] = plan.seed();
  j["epoch"] = plan.epoch();
  j["evaluation"] = plan.evaluation();
  if (plan.image() != 0) j["image"] = plan.image();
  detail::json& samples = j["samples"] = detail::json::array();
  for (std::size_t i = 0; i < plan.size(); ++i) {
    detail::json sample;
    sample["id"] = plan.sample_id(i);
    sample["source"] = detail::written(plan.source_grid(i), {"to_json", static_cast<std::int64_t>(i)}, "source");
    sample["steps"] = detail::json::parse(detail::drawn_text(plan, i, true));
    samples.push_back(std::move(sample));
  }
  return j;
}

// plan_from_json: returns the plan that the JSON describes, for the pipeline from which it was written. Parameters are
//   used as the JSON has them: an edited one takes effect, "not drawn" switches an operation off for a sample, and
//   parameters in place of "not drawn" switch it on.
// From a file: plan_from_json(pipeline, parse_json(stream)), whose depth is bounded.
// Errors: JSON of another pipeline, library version or format; a field that is missing, unknown, of the wrong type or
// out of range; what the operations refuse. Views of other grids are refused by the run.
template <class Pipeline>
auto plan_from_json(const Pipeline& operations, const nlohmann::ordered_json& j) {
  const auto c = as_chain(operations);
  using chain_type = std::remove_const_t<decltype(c)>;
  const site where{"plan_from_json"};
  detail::check_signature(j, detail::signature(static_cast<const chain_type*>(nullptr)), where);
  settings s;
  detail::read(j["seed"], s.seed, where, "seed");
  detail::read(j["epoch"], s.epoch, where, "epoch");
  detail::read(j["evaluation"], s.evaluation, where, "evaluation");
  if (j.contains("image")) detail::read(j["image"], s.image, where, "image");
  const detail::json& samples = j["samples"];
  require(samples.is_array(), where, "samples is not a list");
  constexpr std::size_t steps = detail::recorded_before<chain_type::size>(static_cast<const chain_type*>(nullptr));
  std::vector<grid> grids(samples.size());
  std::vector<std::uint64_t> ids(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const site here{"plan_from_json", static_cast<std::int64_t>(i)};
    detail::check_members(samples[i], {"id", "source", "steps"}, here, "the sample");
    detail::read(samples[i]["id"], ids[i], here, "id");
    detail::read(samples[i]["source"], grids[i], here, "source");
    const detail::json& drawn = samples[i]["steps"];
    require(drawn.is_array() && drawn.size() == steps, here, "steps are not a list of ", steps,
            ", one for each operation that is random or chosen for each sample");
  }
  s.sample_ids = ids;
  s.same_ids = true;  // ids may repeat if they did in the original plan
  return planned<chain_type>(c, grids, s, detail::read_drawing<chain_type>{samples, ids.data()});
}

}  // namespace suture
