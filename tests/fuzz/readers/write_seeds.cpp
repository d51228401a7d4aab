// SPDX-License-Identifier: Apache-2.0
// Writes the files that the harnesses start from into a folder for each: write_seeds FOLDER
#include <fstream>
#include <iostream>

#include "common/fingerprint_json.hpp"
#include "common/nifti.hpp"
#include "common/stain_json.hpp"
#include "recipe.hpp"
#if defined(SUTURE_EXAMPLE_TIFF)
#include <tiffio.h>
#endif

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

void nifti(const fs::path& folder) {
  const grid g{.extents = {2, 3, 4}, .spacing = {2.5, 1, .75}, .origin = {-10, 4, 7}};
  volume<std::uint8_t> labels{g, std::vector<std::uint8_t>(24, 1)};
  volume<std::int16_t> ct{g, std::vector<std::int16_t>(24, -1000)};
  volume<float> real{g, std::vector<float>(24, .5f)};
  for (std::size_t i = 0; i < 24; ++i) ct.voxels[i] = static_cast<std::int16_t>(50 * i);
  write_nifti(folder / "labels.nii", labels);
  write_nifti(folder / "ct.nii", ct);
  write_nifti(folder / "real.nii", real);
  write_nifti(folder / "ct.nii.gz", ct);
  // The spacing alone, and the quaternion alone.
  std::ifstream file(folder / "ct.nii", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  bytes[254] = 0;
  write_text(folder / "qform.nii", bytes);
  bytes[252] = 0;
  write_text(folder / "spacing.nii", bytes);
  bytes[40] = 2, bytes[46] = 0;  // a slice
  write_text(folder / "slice.nii", bytes);
}

void json(const fs::path& root) {
  write_stains(root / "stain_json/stains.json", stain_reference{});
  const std::uint64_t ids[] = {7, 8};
  const grid g{.extents = {4, 5, 6}};
  write_text(root / "replay_json/two_samples.json",
             to_json(plan(fuzz::recipe(), std::vector{g, g}, {.seed = 3, .epoch = 1, .sample_ids = ids})).dump());
  write_text(root / "fingerprint_json/one_case.json",
             R"({"foreground_counts_per_channel":{"0":{"values":[-3.0,5.0],"counts":[2,7]}},)"
             R"("shapes_after_crop":[[2,3,4]],"spacings":[[2.5,1.0,1.0]],"cases":["a"]})");
}

#if defined(SUTURE_EXAMPLE_TIFF)
void slides(const fs::path& folder) {
  for (const bool tiled : {true, false}) {
    TIFF* file = TIFFOpen((folder / (tiled ? "tiled.tif" : "strips.tif")).c_str(), "w");
    for (const std::uint32_t size : {32u, 16u}) {
      TIFFSetField(file, TIFFTAG_SUBFILETYPE, size == 32 ? 0u : unsigned{FILETYPE_REDUCEDIMAGE});
      TIFFSetField(file, TIFFTAG_IMAGEWIDTH, size);
      TIFFSetField(file, TIFFTAG_IMAGELENGTH, size);
      if (tiled) {
        TIFFSetField(file, TIFFTAG_TILEWIDTH, 16u);
        TIFFSetField(file, TIFFTAG_TILELENGTH, 16u);
      } else {
        TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, 16u);
      }
      TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
      TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
      TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
      TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
      TIFFSetField(file, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
      TIFFSetField(file, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
      TIFFSetField(file, TIFFTAG_XRESOLUTION, 20000.0);
      TIFFSetField(file, TIFFTAG_YRESOLUTION, 20000.0);
      std::vector<std::uint8_t> pixels(3 * 32 * 32, 200);
      for (std::uint32_t y = 0; y < size; y += 16)
        for (std::uint32_t x = 0; x < (tiled ? size : 1u); x += 16)
          if (tiled)
            TIFFWriteTile(file, pixels.data(), x, y, 0, 0);
          else
            TIFFWriteEncodedStrip(file, y / 16, pixels.data(), static_cast<tmsize_t>(16 * size * 3));
      TIFFWriteDirectory(file);
    }
    TIFFClose(file);
  }
}
#endif

// A little of everything for harnesses that read numbers.
void numbers(const fs::path& folder) {
  for (char first = 0; first < 5; ++first) {
    std::string bytes(300, '\x70');
    bytes[0] = first;
    for (std::size_t i = 1; i < bytes.size(); ++i) bytes[i] = static_cast<char>(96 + 7 * i % 40);
    write_text(folder / ("numbers_" + std::to_string(first)), bytes);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  const fs::path root = arguments[1];
  for (const char* each : {"nifti", "stain_json", "fingerprint_json", "replay_json", "slide", "plan"})
    fs::create_directories(root / each);
  nifti(root / "nifti");
  json(root);
#if defined(SUTURE_EXAMPLE_TIFF)
  slides(root / "slide");
#endif
  numbers(root / "plan");
}
