// SPDX-License-Identifier: Apache-2.0
// What every example promises of its runs: one at a time in a folder, no file of the user's lost, and as much memory
// for many patches as for few.
#include <gtest/gtest.h>
#include <sys/file.h>

#include "support/example_program.hpp"

namespace {

namespace fs = std::filesystem;
using support::run_end;

class examples : public support::example_program {
protected:
  // Runs the program of this name on the CPU into the folder `out`.
  run_end run(const std::string& name, std::vector<std::string> arguments) const {
    for (const char* word : {"--backend", "cpu", "--out"}) arguments.emplace_back(word);
    arguments.push_back((folder / "out").string());
    return run_here(name, std::move(arguments));
  }
  void expect_refused(const std::string& name, const std::string& words) const {
    EXPECT_EQ(run(name, {}).status, 1) << name << ": " << said();
    EXPECT_NE(said().find(words), std::string::npos) << name << ": " << said();
  }
};

const char* const names[] = {"ct_patches", "ct_preprocess",   "brats_patches", "nnunet_batch",
                             "wsi_tiles",  "patch_embedding", "feed"};

TEST_F(examples, one_run_at_a_time_in_a_folder) {
  fs::create_directories(folder / "out");
  const int lock = open((folder / "out/.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);  // as another run would hold it
  for (const char* name : names) expect_refused(name, "another run is at work there");
  close(lock);
}

TEST_F(examples, a_report_or_list_of_somebody_else_is_not_touched) {
  fs::create_directories(folder / "out");
  for (const char* file : {"report.json", ".unfinished"})
    for (const char* name : names) {
      std::ofstream(folder / "out" / file) << "mine";
      expect_refused(name, "it is not touched");
      std::ifstream left(folder / "out" / file);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(left), {}), "mine") << name;
      fs::remove(folder / "out" / file);
    }
}

// All patches of the long runs together are 45 MB.
TEST_F(examples, memory_does_not_grow_with_the_count) {
  const std::pair<const char*, std::vector<std::string>> programs[] = {
      {"brats_patches", {"--patch", "16", "--batch-size", "8", "--threads", "1"}},
      {"nnunet_batch", {"--patch", "24", "--spacing", "8", "--batch-size", "8", "--threads", "1"}}};
  for (const auto& [name, arguments] : programs) {
    const auto peak = [&, name = name, arguments = arguments](long count) {
      auto words = arguments;
      words.insert(words.end(), {"--count", std::to_string(count)});
      const run_end end = run(name, words);
      EXPECT_EQ(end.status, 0) << name << ": " << said();
      return end.peak_kib;
    };
    const long few = peak(16), many = peak(1024);
    EXPECT_LT(many, few + 8 * 1024) << name << ": " << few << " KiB, then " << many;
  }
}

}  // namespace
