// SPDX-License-Identifier: Apache-2.0
// Slides of unknown origin, read in a process of their own: what a damaged file does to OpenSlide and the libraries
// beneath, it does there.
#pragma once

#include "slide.hpp"

namespace suture::examples {

// For a program that calls open_slide_apart, before anything else in main(). The program starts itself to read a slide:
// in that process this call serves the slide and ends the process; in any other it returns at once.
void serve_slides(int argc, char** argv);

struct slide_limits {
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;  // of address space; no limit under sanitizers
  unsigned seconds = 120;                               // to open the slide, and to read a region
};

// As open_slide, with the same pixels, by a process that is gone when the slide is. Throws as open_slide, and where
// that process was stopped by a signal or a limit: the slide is lost then, the caller goes on. Regions are read one by
// one, by whichever thread asks.
std::unique_ptr<slide> open_slide_apart(const std::filesystem::path& path, double assumed_mpp = 0,
                                        const slide_limits& limits = {});

}  // namespace suture::examples
