// SPDX-License-Identifier: Apache-2.0
// The command line that programs on patches of CT volumes share: which scans are read, and how large a patch is.
#pragma once

#include "common/program.hpp"
#include "recipe.hpp"

namespace suture::examples {

// Adds the scans, the backend and the job. `images` describes what --image takes.
template <class Options>
void add_scan_options(CLI::App& app, Options& o, const std::string& images) {
  app.add_option("--image", o.images, images)->type_name("FILE...")->default_str("");
  app.add_option("--label", o.labels, "their label maps, in the same order")->type_name("FILE...")->default_str("");
  add_ct_sample_option(app, o.sample);
  add_backend_option(app, o.backend);
  add_job_options(app, o, 1000000);
}

// Adds the size and the spacing of patches.
template <class Options>
void add_patch_options(CLI::App& app, Options& o) {
  app.add_option("--patch", o.patch, "size of a patch in voxels, one number or z y x")
      ->expected(1, 3)
      ->check(CLI::Range(1, 2048));
  app.add_option("--spacing", o.spacing, "distance of voxels in the patches in mm, one number or z y x")
      ->expected(1, 3)
      ->check(CLI::Range(0.01, 100.0));
  app.add_flag("--eval", o.evaluation, "as for evaluation: nothing random, the middle of every scan");
}

// The recipe that the options ask for. Throws CLI::ParseError where they contradict each other.
template <class Options>
recipe recipe_of(const Options& o) {
  const recipe r{triple<std::int64_t>(o.patch, "--patch"), triple<double>(o.spacing, "--spacing")};
  if (!o.images.empty() && !o.sample.empty()) throw CLI::ValidationError("--sample", "excludes --image");
  if (!o.labels.empty() && o.labels.size() != o.images.size())
    throw CLI::ValidationError(
        "--label", std::to_string(o.labels.size()) + " files for " + std::to_string(o.images.size()) + " of --image");
  return r;
}

}  // namespace suture::examples
