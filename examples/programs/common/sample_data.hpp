// SPDX-License-Identifier: Apache-2.0
// Real images to try things on: those of the folder examples/data, whose README says where they come from, and the head
// CT of the Debian package invesalius-examples with the bone mask stored with it (Centro de Tecnologia da Informacao
// Renato Archer, GPL-2). The package is downloaded once and unpacked into the user's cache folder; it is not installed
// and nothing is written next to the sources.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "volume.hpp"

namespace suture::examples {

struct sample_volume {
  std::string name;
  std::vector<std::string> label_names;  // of labels 1, 2, ...
  volume<std::int16_t> image;            // Hounsfield units
  label_volume labels;
};

// A file of examples/data, by its name there. Throws suture::error if it is not there.
std::filesystem::path sample_file(const std::string& name);

// The abdomen CT with some of its organs.
sample_volume abdomen_sample();

// $XDG_CACHE_HOME/suture, else ~/.cache/suture.
std::filesystem::path cache_folder();

// Throws suture::error if the package cannot be had or does not hold what it should.
sample_volume head_sample();

// "head" is the head CT, anything else the abdomen CT.
sample_volume ct_sample(const std::string& which);

// The head CT from an InVesalius project file.
sample_volume read_invesalius(const std::filesystem::path& project);

}  // namespace suture::examples
