// SPDX-License-Identifier: Apache-2.0
// The program that makes tiles, run as a user runs it, on a good slide beside bad ones.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/histology_phantom.hpp"
#include "support/scratch_folder.hpp"
#include "support/tiff_files.hpp"

namespace {

#if defined(SUTURE_EXAMPLE_OPENSLIDE)

namespace fs = std::filesystem;
using namespace suture::examples;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class wsi_tiles : public support::scratch_folder {
protected:
  // Runs it and returns its exit status.
  int run(const std::string& arguments) const {
    const std::string line = std::string("cd '") + folder.string() + "' && '" + SUTURE_WSI_TILES + "' " + arguments +
                             " --backend cpu --tile 64 --count 4 --out out >stdout 2>stderr";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  nlohmann::json report() const { return nlohmann::json::parse(text_of(folder / "out" / "report.json")); }
};

TEST_F(wsi_tiles, says_what_the_labels_of_a_sample_stand_for) {
  ASSERT_EQ(run("--sample phantom"), 0) << text_of(folder / "stderr");
  EXPECT_EQ(report().at("label_names"), nlohmann::json({"stroma", "gland", "nucleus"}));
  fs::remove_all(folder / "out");
  ASSERT_EQ(run("--sample cmu1"), 0) << text_of(folder / "stderr");
  EXPECT_EQ(report().at("label_names"), nlohmann::json({"tissue"}));
}

TEST_F(wsi_tiles, finishes_the_good_slide_beside_those_that_kill_openslide) {
  const auto phantom = make_histology_phantom({.seed = 3, .height = 3000, .width = 4000});
  support::write_tiled(folder / "good.tif", {phantom->read(1000, 1200, 0, 512, 512)}, 20000);
  support::write_bytes(folder / "wide.svs", support::wide_tile().bytes());
  support::write_bytes(folder / "long.svs", support::long_tile().bytes());
  ASSERT_EQ(run("--slide good.tif"), 0) << text_of(folder / "stderr");
  const nlohmann::json alone = report();
  EXPECT_TRUE(alone.at("skipped").empty());
  EXPECT_EQ(alone.at("count"), 4);

  ASSERT_EQ(run("--slide good.tif wide.svs long.svs absent.svs --assume-mpp 0.5"), 3) << text_of(folder / "stderr");
  const nlohmann::json beside = report();
  EXPECT_EQ(beside.at("image_digest"), alone.at("image_digest"));
  EXPECT_EQ(beside.at("label_digest"), alone.at("label_digest"));
  ASSERT_EQ(beside.at("skipped").size(), 3u);
  const std::string told = text_of(folder / "stderr");
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = std::array{"wide.svs", "long.svs", "absent.svs"}[i];
    EXPECT_EQ(beside.at("skipped")[i].at("name"), name);
    const std::string reason = beside.at("skipped")[i].at("reason");
    EXPECT_NE(reason.find(i < 2 ? name + ": page 1: tiles of " : name + ": cannot be opened"), reason.npos) << reason;
    EXPECT_NE(told.find("skipped: " + reason), told.npos) << told;
  }
  EXPECT_EQ(run("--slide wide.svs long.svs"), 1);

  // A name that is not UTF-8, a loop of links, and one where the stains of a slide would be kept.
  const std::string latin = "caf\xe9.tif";
  fs::copy_file(folder / "good.tif", folder / latin);
  fs::copy_file(folder / "good.tif", folder / "kept.tif");
  fs::create_symlink("loop.svs", folder / "loop.svs");
  fs::create_directories(folder / "stains");
  fs::create_symlink("kept.tif.json", folder / "stains/kept.tif.json");
  ASSERT_EQ(run("--slide " + latin + " loop.svs kept.tif --stains stains"), 3) << text_of(folder / "stderr");
  const nlohmann::json named = report();
  EXPECT_EQ(named.at("image_digest"), alone.at("image_digest"));
  EXPECT_EQ(named.at("slides")[0].at("name"), "caf\xef\xbf\xbd.tif");  // U+FFFD
  ASSERT_EQ(named.at("skipped").size(), 2u);
  EXPECT_EQ(named.at("skipped")[0].at("name"), "loop.svs");
  EXPECT_EQ(named.at("skipped")[1].at("name"), "kept.tif");
}

#endif

}  // namespace
