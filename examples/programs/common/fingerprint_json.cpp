// SPDX-License-Identifier: Apache-2.0
#include "fingerprint_json.hpp"

#include <type_traits>

#include "whole_file.hpp"

namespace suture::examples {
namespace {

constexpr site here{"fingerprint"};
namespace fs = std::filesystem;

const char* const properties_key = "foreground_intensity_properties_per_channel";
const char* const counts_key = "foreground_counts_per_channel";

template <class T>
report triple(const vec3<T>& v) {
  return {v[0], v[1], v[2]};
}

template <class T>
vec3<T> triple_from(const report& document) {
  require(document.size() == 3, here, "a triple has ", document.size(), " numbers");
  if constexpr (std::is_integral_v<T>)
    for (const report& each : document) require(each.is_number_integer(), here, "a triple of whole numbers has others");
  return {document.at(0).get<T>(), document.at(1).get<T>(), document.at(2).get<T>()};
}

}  // namespace

report fingerprint_to_json(const cohort_fingerprint& fingerprint) {
  report properties = report::object(), counts = report::object();
  for (std::size_t c = 0; c < fingerprint.channels(); ++c) {
    const intensity_properties p = fingerprint.intensities(c);
    properties[std::to_string(c)] = {{"max", p.maximum},
                                     {"mean", p.mean},
                                     {"median", p.median},
                                     {"min", p.minimum},
                                     {"percentile_00_5", p.percentile_00_5},
                                     {"percentile_99_5", p.percentile_99_5},
                                     {"std", p.standard_deviation}};
    report values = report::array(), times = report::array();
    for (const value_counts::entry& e : fingerprint.counts()[c].entries()) {
      values.push_back(static_cast<double>(e.value));
      times.push_back(e.count);
    }
    counts[std::to_string(c)] = {{"values", std::move(values)}, {"counts", std::move(times)}};
  }
  report shapes = report::array(), spacings = report::array(), names = report::array();
  for (const case_geometry& g : fingerprint.cases()) {
    shapes.push_back(triple(g.shape));
    spacings.push_back(triple(g.spacing));
    names.push_back(g.name);
  }
  return {{properties_key, std::move(properties)},
          {"shapes_after_crop", std::move(shapes)},
          {"spacings", std::move(spacings)},
          {"cases", std::move(names)},
          {counts_key, std::move(counts)}};
}

cohort_fingerprint fingerprint_from_json(const report& document) {
  try {
    const report& names = document.at("cases");
    const report& shapes = document.at("shapes_after_crop");
    const report& spacings = document.at("spacings");
    require(shapes.size() == names.size() && spacings.size() == names.size(), here, names.size(), " cases, ",
            shapes.size(), " shapes and ", spacings.size(), " spacings");
    std::vector<case_geometry> cases;
    for (std::size_t i = 0; i < names.size(); ++i)
      cases.push_back(
          {names[i].get<std::string>(), triple_from<std::int64_t>(shapes[i]), triple_from<double>(spacings[i])});
    const report& per_channel = document.at(counts_key);
    std::vector<value_counts> counts;
    for (std::size_t c = 0; c < per_channel.size(); ++c) {
      const report& channel = per_channel.at(std::to_string(c));
      const report& values = channel.at("values");
      const report& times = channel.at("counts");
      require(values.size() == times.size(), here, values.size(), " values with ", times.size(), " counts");
      std::vector<value_counts::entry> entries;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = values[i].get<double>();
        require(static_cast<double>(static_cast<float>(value)) == value, here, "value ", value, " is not a float");
        require(times[i].is_number_unsigned(), here, "count ", i, " is not a whole number");
        entries.push_back({static_cast<float>(value), times[i].get<std::uint64_t>()});
      }
      counts.emplace_back(std::move(entries));
    }
    return cohort_fingerprint::from(std::move(cases), std::move(counts));
  } catch (const report::exception& e) {
    fail(here, e.what());
  }
}

void write_fingerprint(const fs::path& path, const cohort_fingerprint& fingerprint) {
  write_whole(here, path, fingerprint_to_json(fingerprint).dump() + '\n');
}

cohort_fingerprint read_fingerprint(const fs::path& path) {
  const report document = read_report(here, path);
  try {
    return fingerprint_from_json(document);
  } catch (const error& e) {
    fail(here, path.string(), ": ", e.what());
  }
}

}  // namespace suture::examples
