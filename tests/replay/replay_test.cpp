// SPDX-License-Identifier: Apache-2.0
// Plans as JSON and back: the same bits, edited parameters, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "support/expect_says.hpp"
#include "suture/replay/json.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using json = nlohmann::ordered_json;

const std::vector<std::uint64_t> ids{7, 0xfedcba9876543210ull};
const settings drawn_by{.seed = 0x123456789abcdef0ull, .epoch = 3, .sample_ids = ids};
const std::vector<grid> scans{{.extents = {9, 21, 17}, .spacing = {2.5, 1.1, .1}, .origin = {1e-3, -70, 1. / 3}},
                              {.extents = {16, 15, 33}}};

// Every random operation of the library but those on color.
auto every_operation(float probability = .6f) {
  const float p = probability;
  return random_affine{.rotate_deg = 15, .scale = {.8f, 1.2f}, .shear = .1f, .translate = 2, .probability = p} |
         random_scale{.probability = p} | random_flip{.probability = p} |
         random_rot90{.axes = {1, 2}, .probability = p} |
         random_elastic{.control_spacing_mm = 2, .max_displacement_mm = .5, .probability = p} |
         random_crop{.size = {7, 11, 12}} | random_gamma{.probability = p} | random_contrast{.probability = p} |
         random_brightness{.probability = p} | random_brightness_factor{.probability = p} |
         gaussian_noise{.probability = p} | rician_noise{.probability = p} | random_bias_field{.probability = p} |
         poisson_noise{.probability = p} | random_histogram_shift{.probability = p} |
         random_coarse_dropout{.holes = {0, 4}, .size = {2, 3, 4}, .fill = {0, 1}, .probability = p} |
         per_channel(random_brightness{.probability = p}, {.probability = .5f}) |
         random_gaussian_blur{.channel_probability = .7f, .probability = p} | random_patch_contrast{.probability = p} |
         random_low_resolution{.channel_probability = .7f, .probability = p} | random_patch_gamma{.probability = p} |
         random_median_filter{.channel_probability = .7f, .probability = p} |
         random_sharpen{.channel_probability = .7f, .probability = p} |
         random_coarse_shuffle{.holes = {1, 3}, .size = {2, 3, 4}, .probability = p} |
         random_gibbs_ringing{.channel_probability = .7f, .probability = p} | random_kspace_spike{.probability = p};
}

const color_moments<lab> fitted[2]{{.mean = {60, 10, -10}, .standard_deviation = {10, 5, 5}},
                                   {.status = fit_status::stated}};

auto every_color_operation() {
  return random_affine{.rotate_deg = 20} | random_hed_jitter{} | random_hsv_jitter{} |
         random_grayscale{.probability = .5f} | random_color_jitter{.random_order = true} | random_stain_jitter{} |
         random_stain_na<lab>{.fitted = fitted, .table = crc_lab};
}

// The bits of all samples, three channels each.
template <class Plan>
std::vector<std::uint64_t> digests(const Plan& p) {
  std::vector<std::uint64_t> result;
  std::vector<std::vector<float>> in, out;
  std::vector<view<const float>> in_views;
  std::vector<view<float>> out_views;
  for (std::size_t i = 0; i < p.size(); ++i) {
    auto& x = in.emplace_back(static_cast<std::size_t>(3 * p.source_grid(i).voxels()));
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k * 37 % 101) / 100;
    out.emplace_back(static_cast<std::size_t>(3 * p.output_grid(i).voxels()));
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    in_views.push_back(contiguous<const float>(in[i].data(), p.source_grid(i), 3));
    out_views.push_back(contiguous(out[i].data(), p.output_grid(i), 3));
  }
  run(cpu{}, p, image(in_views, out_views));
  for (const auto& v : out_views) result.push_back(digest(v));
  return result;
}

template <class Pipeline>
void expect_replays(const Pipeline& pipeline) {
  for (const std::uint32_t epoch : {0u, 1u, 0xffffffffu}) {
    const auto p = plan(pipeline, scans, {.seed = drawn_by.seed, .epoch = epoch, .sample_ids = ids});
    const json j = to_json(p);
    const auto again = plan_from_json(pipeline, json::parse(j.dump()));
    EXPECT_EQ(to_json(again), j);
    EXPECT_EQ(digests(again), digests(p));
  }
}

TEST(Replay, GivesTheSameBits) { expect_replays(every_operation()); }
TEST(Replay, GivesTheSameBitsOfColor) { expect_replays(every_color_operation()); }

// All that chance decides is written, but random fields: without these another seed draws the same.
TEST(Replay, HoldsEverythingDrawn) {
  const auto pipeline = every_operation(1);
  json j = to_json(plan(pipeline, scans, drawn_by));
  for (json& sample : j["samples"])
    for (json& step : sample["steps"])
      for (const char* name :
           {"random_elastic", "gaussian_noise", "rician_noise", "poisson_noise", "random_coarse_shuffle"})
        if (step["name"] == name) step["parameters"] = "not drawn";
  for (json& sample : j["samples"])  // its fill is a field
    sample["steps"][15]["parameters"]["holes"] = json::array();
  const auto before = digests(plan_from_json(pipeline, j));
  j["seed"] = 1;
  EXPECT_EQ(digests(plan_from_json(pipeline, j)), before);

  json color = to_json(plan(every_color_operation(), scans, drawn_by));
  color["seed"] = 1;
  EXPECT_EQ(digests(plan_from_json(every_color_operation(), color)),
            digests(plan(every_color_operation(), scans, drawn_by)));
}

// Noise by voxel follows from seed, epoch, id and kind.
TEST(Replay, NoiseComesFromTheSeedAndTheId) {
  const json j = to_json(plan(gaussian_noise{}, scans, drawn_by));
  const auto before = digests(plan_from_json(gaussian_noise{}, j));
  for (const char* key : {"seed", "epoch"}) {
    json other = j;
    other[key] = 1;
    EXPECT_NE(digests(plan_from_json(gaussian_noise{}, other)), before) << key;
  }
  json other = j;
  other["samples"][1]["id"] = 8;
  const auto after = digests(plan_from_json(gaussian_noise{}, other));
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[1]);
}

TEST(Replay, HoldsWhichImageItIs) {
  const auto augment = random_affine{.rotate_deg = 15} | random_crop{.size = {3, 4, 5}} | gaussian_noise{.sigma = 1};
  suture::settings of_second = drawn_by;
  of_second.image = 1;
  const auto first = plan(augment, scans, drawn_by), second = plan(augment, scans, of_second);
  EXPECT_FALSE(to_json(first).contains("image"));
  const json j = to_json(second);
  EXPECT_EQ(j["image"], 1);
  EXPECT_EQ(digests(plan_from_json(augment, json::parse(j.dump()))), digests(second));
  EXPECT_NE(digests(second), digests(first));
}

TEST(Replay, TakesABatchOfTheSameIdTwice) {
  const std::vector<std::uint64_t> twice{7, 7};
  const auto augment = random_crop{.size = {3, 4, 5}} | gaussian_noise{.sigma = 1};
  const auto made = plan(augment, scans, {.seed = 2, .sample_ids = twice, .same_ids = true});
  EXPECT_EQ(digests(plan_from_json(augment, to_json(made))), digests(made));
}

// Where a patch was cut out is in the record, and comes from it, whatever the pipeline is given.
TEST(Replay, HoldsTheStartsOfCropAt) {
  const auto from = [](std::span<const extent3> starts) {
    return window{.center = .5f, .width = 1} | crop_at{.starts = starts, .size = {4, 9, 8}, .may_leave = true} |
           random_affine{.rotate_deg = 15} | random_crop{.size = {3, 4, 5}} | random_gamma{};
  };
  const auto made = [&] {
    const std::vector<extent3> starts{{2, 3, 4}, {-1, 7, 30}};
    return plan(from(starts), scans, drawn_by);
  }();
  const json j = to_json(made);
  EXPECT_EQ(j["pipeline"][1].dump(), R"({"name":"crop_at"})");
  EXPECT_EQ(j["samples"][1]["steps"][0].dump(), R"({"name":"crop_at","parameters":{"start":[-1,7,30]}})");
  EXPECT_EQ(j["samples"][1]["steps"][1]["name"], "random_affine");
  const std::vector<extent3> others{{0, 0, 0}, {1, 1, 1}};
  for (const std::span<const extent3> starts : {std::span<const extent3>(), std::span<const extent3>(others)}) {
    const auto again = plan_from_json(from(starts), json::parse(j.dump()));
    EXPECT_EQ(to_json(again), j);
    EXPECT_EQ(digests(again), digests(made));
  }
  const auto evaluated = plan(from(others), scans, {.evaluation = true});
  EXPECT_EQ(to_json(evaluated)["samples"][1]["steps"][0]["parameters"]["start"], json({1, 1, 1}));
  EXPECT_EQ(digests(plan_from_json(from({}), to_json(evaluated))), digests(evaluated));

  json edited = j;
  edited["samples"][0]["steps"][0]["parameters"]["start"] = {0, 0, 0};
  EXPECT_NE(digests(plan_from_json(from({}), edited))[0], digests(made)[0]);
  EXPECT_EQ(digests(plan_from_json(from({}), edited))[1], digests(made)[1]);
  edited["samples"][0]["steps"][0]["parameters"] = "not drawn";
  EXPECT_SAYS(plan_from_json(from({}), edited), "crop_at: sample 0 (id 7): parameters \"not drawn\" is not an object");
  edited["samples"][0]["steps"][0]["parameters"] = {{"start", {0, 0, 1 << 22}}};
  EXPECT_SAYS(plan_from_json(from({}), edited), "start (0, 0, 4194304) is more than 2097152 voxels away");
  edited["samples"][0]["steps"].erase(0);
  EXPECT_SAYS(plan_from_json(from({}), edited), "steps are not a list of 4, one for each operation that is random or");
}

// Where a patch about a class was cut out is in the record as well; a replay needs no index of the classes.
TEST(Replay, HoldsTheStartsOfCropByClass) {
  std::vector<std::vector<std::uint8_t>> labels;
  std::vector<const class_index*> cases;
  std::vector<class_index> indexes;
  for (const grid& g : scans) {
    labels.emplace_back(static_cast<std::size_t>(g.voxels()), std::uint8_t{0});
    labels.back()[labels.back().size() / 3] = 1;
    indexes.push_back(
        index_classes(cpu{}, label_classes(contiguous<const std::uint8_t>(labels.back().data(), g), 2))[0]);
  }
  for (const class_index& index : indexes) cases.push_back(&index);
  const auto from = [](std::span<const class_index* const> given) {
    return resample{.spacing_mm = {2, 2, .5}} | pad_to{{9, 9, 9}} |
           crop_by_class{.rule = class_balanced_patch{.size = {4, 9, 3}}, .cases = given} |
           random_affine{.rotate_deg = 15} | random_gamma{};
  };
  const auto made = plan(from(cases), scans, drawn_by);
  const json j = to_json(made);
  EXPECT_EQ(j["pipeline"][2].dump(), R"({"name":"crop_by_class","kind":6})");
  const extent3 start = made.drawn<2>(1).parameters.start;
  EXPECT_EQ(j["samples"][1]["steps"][0]["parameters"]["start"], json({start[0], start[1], start[2]}));
  for (const std::span<const class_index* const> given :
       {std::span<const class_index* const>(), std::span<const class_index* const>(cases)}) {
    const auto again = plan_from_json(from(given), json::parse(j.dump()));
    EXPECT_EQ(to_json(again), j);
    EXPECT_EQ(digests(again), digests(made));
  }
  json edited = j;
  edited["samples"][0]["steps"][0]["parameters"]["start"] = {0, 0, 0};
  EXPECT_NE(digests(plan_from_json(from({}), edited))[0], digests(made)[0]);
  EXPECT_EQ(digests(plan_from_json(from({}), edited))[1], digests(made)[1]);
}

TEST(Replay, WithoutChanceInEvaluation) {
  const auto p = plan(every_operation(), scans, {.evaluation = true});
  const json j = to_json(p);
  EXPECT_EQ(j["samples"][0]["steps"][0]["parameters"], "not drawn");
  EXPECT_EQ(j["samples"][0]["steps"][5]["parameters"].dump(), R"({"start":[1,5,2]})");  // the center crop
  EXPECT_EQ(digests(plan_from_json(every_operation(), j)), digests(p));
}

TEST(Replay, EditedParametersTakeEffect) {
  const auto turn = random_affine{.rotate_deg = 40, .probability = 1};
  json j = to_json(plan(turn, scans, drawn_by));
  for (json& sample : j["samples"]) sample["steps"][0]["parameters"]["rotate_deg"] = {0, 0, 0};
  const auto upright = digests(plan(affine{}, scans));
  EXPECT_EQ(digests(plan_from_json(turn, j)), upright);
  for (json& sample : j["samples"]) sample["steps"][0]["parameters"]["rotate_deg"] = {0, 0, 12.5};
  EXPECT_EQ(digests(plan_from_json(turn, j)), digests(plan(affine{.rotate_deg = {0, 0, 12.5}}, scans)));
  for (json& sample : j["samples"]) sample["steps"][0]["parameters"] = "not drawn";
  EXPECT_EQ(digests(plan_from_json(turn, j)), upright);

  // Written in place of "not drawn", parameters act.
  const auto never = per_channel(random_brightness{.probability = 0});
  j = to_json(plan(never, scans, drawn_by));
  const json channel{{"offset", .25}};
  for (json& sample : j["samples"])
    sample["steps"][0]["parameters"] = {{"channels", json::array({channel, channel, channel, "not drawn", "not drawn",
                                                                  "not drawn", "not drawn", "not drawn"})}};
  EXPECT_EQ(digests(plan_from_json(never, j)), digests(plan(brightness{.offset = .25f}, scans)));
}

TEST(Replay, AsThePageSays) {
  const auto train = random_affine{.rotate_deg = 15} | random_gamma{};
  const auto made = plan(train, scans, drawn_by);
  const std::string path = testing::TempDir() + "suture_replay_test.json";
  // [replay]
  std::ofstream(path) << suture::to_json(made).dump(1);  // #include <suture/replay/json.hpp>

  nlohmann::ordered_json record = suture::parse_json(std::ifstream(path));
  const auto again = suture::plan_from_json(train, record);  // runs as `made` does, bit by bit

  record["samples"][0]["steps"][0]["parameters"]["rotate_deg"] = {0, 0, 0};
  const auto upright = suture::plan_from_json(train, record);  // sample 0 not turned, all else as it was
  // [/replay]
  EXPECT_EQ(digests(again), digests(made));
  EXPECT_EQ(to_json(upright), record);
  EXPECT_NE(digests(upright)[0], digests(made)[0]);
  EXPECT_EQ(digests(upright)[1], digests(made)[1]);
  std::filesystem::remove(path);
}

TEST(Replay, NumbersAreShortAndExact) {
  EXPECT_EQ(detail::written(.1f, {}, "").dump(), "0.1");
  EXPECT_EQ(detail::written(-0.0f, {}, "").dump(), "-0.0");
  EXPECT_EQ(detail::written(1. / 3, {}, "").dump(), "0.3333333333333333");
  for (const float extreme : {std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::max(),
                              // The double nearest to the shortest decimal of this one, 7.038531e-26, is another float.
                              0x1.5c87fap-84f})
    EXPECT_EQ(json::parse(detail::written(extreme, {}, "").dump()).get<float>(), extreme);
  std::uint32_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    float x = 0, back = 0;
    std::memcpy(&x, &bits, sizeof x);
    if (!std::isfinite(x)) continue;
    detail::read(json::parse(detail::written(x, {}, "").dump()), back, {}, "x");
    ASSERT_EQ(std::memcmp(&x, &back, sizeof x), 0) << x;
  }
  EXPECT_SAYS((detail::written(std::numeric_limits<double>::infinity(), {"affine", 2}, "scale")),
              "affine: sample 2: scale inf is not finite");
}

TEST(Replay, RefusesAnotherPipeline) {
  const auto pipeline = window{.center = 40, .width = 400} | random_crop{.size = {4, 4, 4}} | random_gamma{};
  const json j = to_json(plan(pipeline, scans, drawn_by));
  EXPECT_SAYS(plan_from_json(random_crop{.size = {4, 4, 4}} | random_gamma{}, j),
              "plan_from_json: another pipeline: operation 0 is {\"name\":\"window\"} there and "
              "{\"name\":\"random_crop\",\"kind\":3} here");
  EXPECT_SAYS(plan_from_json(window{.center = 40, .width = 400} | random_crop{.size = {4, 4, 4}}, j),
              "another pipeline: 3 operations there and 2 here");
  const auto says = [&](const char* key, const json& value, const std::string& words) {
    json other = j;
    other[key] = value;
    EXPECT_SAYS(plan_from_json(pipeline, other), words);
  };
  says("format", "a plan", "format \"a plan\" is not \"suture plan\"");
  says("format_version", 2, "format_version 2, this library reads 1");
  says("library_version", "0.0.9", "written by version \"0.0.9\" of the library, this is ");
  says("pipeline", 5, "pipeline 5 is not a list");
  says("seed", -1, "seed -1 is out of range");
  says("epoch", 4294967296, "epoch 4294967296 is out of range");
  says("evaluation", 1, "evaluation 1 is not true or false");
  says("samples", json::array(), "the batch is empty");
  says("remark", "mine", "the plan has the unknown field \"remark\"");
  json other = j;
  other.erase("seed");
  EXPECT_SAYS(plan_from_json(pipeline, other), "the plan has no field \"seed\"");
  EXPECT_SAYS(plan_from_json(pipeline, json(3)), "the plan 3 is not an object");
}

TEST(Replay, ErrorsNameOperationSampleAndValue) {
  const auto pipeline = random_affine{} | random_crop{.size = {4, 4, 4}} | random_gamma{} | gaussian_noise{} |
                        random_gaussian_blur{} | random_low_resolution{};
  const json j = to_json(plan(pipeline, scans, drawn_by));
  // Of sample 1: the step, the field, what stands there, and what is said.
  const auto says = [&](std::size_t step, const json& patch, const std::string& words) {
    json other = j;
    other["samples"][1]["steps"][step]["parameters"].merge_patch(patch);
    EXPECT_SAYS(plan_from_json(pipeline, other), words);
  };
  says(0, {{"scale", nullptr}}, "random_affine: sample 1 (id 18364758544493064720): parameters has no field \"scale\"");
  says(0, {{"angle", 5}},
       "random_affine: sample 1 (id 18364758544493064720): parameters has the unknown field \"angle\"");
  says(0, {{"scale", {1, "2", 1}}},
       "random_affine: sample 1 (id 18364758544493064720): parameters.scale[1] \"2\" is not a number");
  says(0, {{"scale", {1, 2}}},
       "random_affine: sample 1 (id 18364758544493064720): parameters.scale has 2 elements, not 3");
  says(0, {{"scale", 1.5}}, "random_affine: sample 1 (id 18364758544493064720): parameters.scale 1.5 is not a list");
  says(0, {{"scale", {1, 0, 1}}},
       "random_affine: sample 1 (id 18364758544493064720): scale (1, 0, 1) must be positive");
  says(0, {{"scale", {1, std::numeric_limits<double>::infinity(), 1}}}, "parameters.scale[1] inf is out of range");
  says(1, {{"start", {0, 0, 40}}},
       "random_crop: sample 1 (id 18364758544493064720): box from (0, 0, 40) of size (4, 4, 4) leaves the volume");
  says(1, {{"start", {0, 0, .5}}},
       "random_crop: sample 1 (id 18364758544493064720): parameters.start[2] 0.5 is not an integer");
  says(2, {{"exponent", -1}}, "random_gamma: sample 1 (id 18364758544493064720): exponent -1 must be positive");
  says(2, {{"exponent", 1e39}},
       "random_gamma: sample 1 (id 18364758544493064720): parameters.exponent 1e+39 is out of range");
  says(3, {{"sigma", -.5}}, "gaussian_noise: sample 1 (id 18364758544493064720): sigma -0.5 must not be negative");
  json other = j;
  other["samples"][1]["steps"][4]["parameters"]["sigma"][2][1] = 9;
  EXPECT_SAYS(plan_from_json(pipeline, other),
              "random_gaussian_blur: sample 1 (id 18364758544493064720): sigma 9 voxels reaches 36 voxels far");
  other = j;
  other["samples"][1]["steps"][5]["parameters"]["zoom"][0] = 0;
  EXPECT_SAYS(plan_from_json(pipeline, other),
              "random_low_resolution: sample 1 (id 18364758544493064720): zoom 0 is not in (0, 1]");
  other = j;
  other["samples"][1]["steps"][2]["parameters"] = "off";
  EXPECT_SAYS(plan_from_json(pipeline, other),
              "random_gamma: sample 1 (id 18364758544493064720): parameters \"off\" is not an object");
  other = j;
  other["samples"][1]["steps"][2]["name"] = "gamma";
  EXPECT_SAYS(plan_from_json(pipeline, other), "random_gamma: sample 1 (id 18364758544493064720): step 2 is \"gamma\"");
  other = j;
  other["samples"][1]["steps"].erase(0);
  EXPECT_SAYS(plan_from_json(pipeline, other), "plan_from_json: sample 1: steps are not a list of 6");
  other = j;
  other["samples"][1]["source"]["spacing"][0] = 0;
  EXPECT_SAYS(plan_from_json(pipeline, other),
              "plan: sample 1 (id 18364758544493064720): spacing (0, 1, 1) must be positive and finite");
  other = j;
  other["samples"][0]["id"] = "7";
  EXPECT_SAYS(plan_from_json(pipeline, other), "plan_from_json: sample 0: id \"7\" is not an integer");
}

// Deeper than the stack would hold if it were written out.
TEST(Replay, RefusesWhatIsNestedWithoutEnd) {
  const auto pipeline = random_crop{.size = {4, 4, 4}} | random_gamma{};
  constexpr std::size_t levels = 300'000;
  json j = to_json(plan(pipeline, scans, drawn_by));
  j["seed"] = json::parse(std::string(levels, '[') + std::string(levels, ']'));
  EXPECT_SAYS(plan_from_json(pipeline, j), "seed [...] is not an integer");
  j["seed"].swap(j["samples"][1]["id"]);
  EXPECT_SAYS(plan_from_json(pipeline, j), "sample 1: id [...] is not an integer");
}

// Nested lists and objects of a text, with neighbors so that objects grow and are moved.
TEST(Replay, RefusesTextNestedWithoutEnd) {
  const auto nested = [](std::size_t levels) {
    return "{\"a\": " + std::string(levels - 1, '[') + std::string(levels - 1, ']') + ", \"b\": 1, \"c\": 2}";
  };
  EXPECT_EQ(parse_json(nested(64))["c"], 2);
  for (const std::size_t levels : {65U, 30'000U, 3'000'000U})
    EXPECT_SAYS(parse_json(nested(levels)),
                "suture: parse_json: lists and objects are nested more than 64 levels deep");
  std::istringstream text(nested(1'000'000));
  EXPECT_SAYS(parse_json(text), "more than 64 levels deep");
  EXPECT_SAYS(parse_json(std::string_view("{\"a\": ")), "suture: parse_json: ");

  // What is written is far from the bound, and comes back.
  const json written = to_json(plan(every_operation(), scans, drawn_by));
  EXPECT_EQ(parse_json(written.dump()), written);
}

TEST(Replay, WantsTheViewsItWasPlannedFor) {
  const auto pipeline = random_gamma{};
  json j = to_json(plan(pipeline, scans, drawn_by));
  std::vector<float> in(9 * 21 * 17), out(in.size());
  const auto run_it = [&] {
    const auto p = plan_from_json(pipeline, j);
    run(cpu{}, p, image(contiguous<const float>(in.data(), scans[0]), contiguous(out.data(), scans[0])));
  };
  EXPECT_SAYS(run_it(), "1 input views for 2 planned samples");
  j["samples"].erase(1);
  EXPECT_SAYS(run_it(), "no error");
  j["samples"][0]["source"]["extents"][2] = 16;
  EXPECT_SAYS(run_it(), "geometry differs from the planned one");
}

TEST(Replay, OrdersAreNames) {
  const auto pipeline = random_color_jitter{.random_order = true};
  json j = to_json(plan(pipeline, scans, drawn_by));
  json& order = j["samples"][0]["steps"][0]["parameters"]["order"];
  order = {"hue", "contrast", "saturation", "brightness"};
  EXPECT_EQ(to_json(plan_from_json(pipeline, j)), j);
  order[1] = "color";
  EXPECT_SAYS(plan_from_json(pipeline, j),
              "random_color_jitter: sample 0 (id 7): parameters.order[1] \"color\" is not a name");
  order[1] = "hue";
  EXPECT_SAYS(plan_from_json(pipeline, j), "order must hold each of the four steps once");
}

}  // namespace
