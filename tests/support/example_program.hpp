// SPDX-License-Identifier: Apache-2.0
// Runs a program among the examples as a user would, in a folder of its own.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "scratch_folder.hpp"

namespace support {

struct run_end {
  int status;
  long peak_kib;  // of its memory
};

class example_program : public scratch_folder {
protected:
  void SetUp() override {
    scratch_folder::SetUp();
    std::filesystem::create_directories(folder / "here");
  }
  // Runs the program of this name in the folder `here`; what it says goes to the file `said` beside it.
  run_end run_here(const std::string& name, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), std::string(SUTURE_EXAMPLES) + "/" + name);
    std::vector<char*> argv;
    for (std::string& word : arguments) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string said_at = (folder / "said").string(), here = (folder / "here").string();
    const pid_t child = fork();
    if (child == 0) {
      dup2(open(said_at.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666), STDERR_FILENO);
      dup2(STDERR_FILENO, STDOUT_FILENO);
      if (chdir(here.c_str()) == 0) execv(argv[0], argv.data());
      _exit(127);
    }
    int status = 0;
    rusage used{};
    wait4(child, &status, 0, &used);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), used.ru_maxrss};
  }
  std::string said() const {
    std::ifstream file(folder / "said");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

}  // namespace support
