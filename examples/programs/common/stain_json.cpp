// SPDX-License-Identifier: Apache-2.0
#include "stain_json.hpp"

#include "whole_file.hpp"

namespace suture::examples {
namespace {

constexpr site here{"stains"};
namespace fs = std::filesystem;
const char* const names[] = {"hematoxylin", "eosin"};
const char* const names_of_old_files[] = {"haematoxylin", "eosin"};

// What a file says of stain k.
const report& of_stain(const report& both, int k) {
  return both.at(both.contains(names_of_old_files[k]) ? names_of_old_files[k] : names[k]);
}

}  // namespace

report stains_to_json(const stain_reference& stains) {
  report vectors = report::object(), most = report::object();
  for (int k = 0; k < 2; ++k) {
    vectors[names[k]] = {stains.stains[0][k], stains.stains[1][k], stains.stains[2][k]};
    most[names[k]] = stains.max_concentration[k];
  }
  return {{"stains", std::move(vectors)}, {"max_concentration", std::move(most)}};
}

stain_reference stains_from_json(const report& document) {
  try {
    stain_reference r;
    for (int k = 0; k < 2; ++k) {
      const report& vector = of_stain(document.at("stains"), k);
      require(vector.size() == 3, here, names[k], " has ", vector.size(), " numbers");
      for (int c = 0; c < 3; ++c) r.stains[c][k] = vector.at(static_cast<std::size_t>(c)).get<double>();
      r.max_concentration[k] = of_stain(document.at("max_concentration"), k).get<double>();
    }
    r.check(here);
    return r;
  } catch (const report::exception& e) {
    fail(here, e.what());
  }
}

void write_stains(const fs::path& path, const stain_reference& stains) {
  write_whole(here, path, stains_to_json(stains).dump(2) + "\n");
}

stain_reference read_stains(const fs::path& path) {
  const report document = read_report(here, path);
  try {
    return stains_from_json(document);
  } catch (const error& e) {
    fail(here, path.string(), ": ", e.what());
  }
}

}  // namespace suture::examples
