// SPDX-License-Identifier: Apache-2.0
// A real CT to try things on: the head CT of the Debian package invesalius-examples with the bone mask stored with it
// (Centro de Tecnologia da Informacao Renato Archer, GPL-2). The package is downloaded once and unpacked into the
// user's cache folder; it is not installed and nothing is written next to the sources.
#pragma once

#include <filesystem>

#include "volume.hpp"

namespace suture::examples {

struct sample_volume {
  volume<std::int16_t> image;  // Hounsfield units
  label_volume labels;         // 1: bone
};

// $XDG_CACHE_HOME/suture, else ~/.cache/suture.
std::filesystem::path cache_folder();

// Throws suture::error if the package cannot be had or does not hold what it should.
sample_volume head_sample();

// The same from an InVesalius project file.
sample_volume read_invesalius(const std::filesystem::path& project);

}  // namespace suture::examples
