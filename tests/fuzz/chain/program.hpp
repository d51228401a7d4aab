// SPDX-License-Identifier: Apache-2.0
// The program around the cases of some chains. One source is compiled in three ways:
//   as it is             every check, and a line with the digest of every case
//   FUZZ_DIGEST_ALONE    the digest alone: for other flags of the compiler
//   FUZZ_DEVICE          the digest alone, of what a device computes
#pragma once

#include <cstdlib>

#if defined(FUZZ_DEVICE)
#include "device.cuh"
#elif defined(FUZZ_DIGEST_ALONE)
#include "digest_alone.hpp"
#else
#include "check.hpp"
#endif

namespace fuzz {

// Numbers of cases are told apart by chain.
template <class Case>
std::uint64_t case_number(std::uint64_t number) {
  return number * 1000 + static_cast<std::uint64_t>(std::atoi(Case::name + 6));
}

// The case as a program of its own.
template <class Case>
void print_program(std::FILE* to, std::uint64_t seed, std::uint64_t number, const std::string& chain) {
  numbers n(seed, case_number<Case>(number));
  std::string conversion = Case::conversion_text;
  if (conversion.find('@') != std::string::npos) {
    host_of_text text{n};
    Case::conversion(text);
    conversion = text.written(conversion);
  }
  std::fprintf(to,
               "    // g++ -std=c++20 -O0 -fopenmp -march=x86-64-v3 -Iinclude -Itests case.cpp && ./a.out\n"
               "    #include \"fuzz/chain/program.hpp\"\n"
               "    using namespace suture;\n"
               "    struct %s {\n"
               "      using element = %s; using label = %s; using label_out = %s;\n"
               "      static constexpr bool color = %d, labels_have_channels = %d, has_level = %d;\n"
               "      static constexpr const char *name = \"%s\", *text = \"\", *conversion_text = \"\";\n"
               "      static constexpr const char *types[3] = {};\n"
               "      static auto chain([[maybe_unused]] auto& c) {\n"
               "        return %s;\n"
               "      }\n"
               "      static auto conversion([[maybe_unused]] auto& c) { return %s; }\n"
               "    };\n"
               "    int main() { return fuzz::repeat<%s>(%lluu, %lluu); }\n",
               Case::name, Case::types[0], Case::types[1], Case::types[2], Case::color, Case::labels_have_channels,
               Case::has_level, Case::name, chain.c_str(), conversion.c_str(), Case::name,
               static_cast<unsigned long long>(seed), static_cast<unsigned long long>(number));
}

struct totals {
  std::uint64_t cases = 0, refused = 0, failed = 0;
  double compared = 0, voxels = 0;
};

template <class Case>
bool run_case(std::uint64_t seed, std::uint64_t number, bool quiet, totals& sum) {
  const verdict v = case_check<Case>(seed, case_number<Case>(number)).run();
  ++sum.cases;
  sum.refused += v.refused;
  sum.compared += v.compared;
  sum.voxels += v.voxels;
  if (!quiet)
    std::printf("%s %llu %016llx%s\n", Case::name, static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(v.digest), v.refused ? " refused" : "");
  if (v.failures.empty()) return true;
  ++sum.failed;
  std::fprintf(stderr, "%s, case %llu:\n", Case::name, static_cast<unsigned long long>(number));
  for (std::size_t i = 0; i < v.failures.size() && i < 5; ++i) std::fprintf(stderr, "  %s\n", v.failures[i].c_str());
  print_program<Case>(stderr, seed, number, v.program);
  return false;
}

// What a printed program does: the case again, and its chain as it is written there.
template <class Case>
int repeat(std::uint64_t seed, std::uint64_t number) {
  const verdict v = case_check<Case>(seed, case_number<Case>(number)).run();
  std::printf("digest %016llx%s%s\n", static_cast<unsigned long long>(v.digest), v.refused ? ", refused: " : "",
              v.message.c_str());
  for (const std::string& failure : v.failures) std::printf("%s\n", failure.c_str());
  return v.failures.empty() ? 0 : 1;
}

// program --seed S --cases N [--first K] [--tell CHAIN]: cases K .. K + N - 1 of each chain; or of one, which is
// printed as a program.
template <class... Cases>
int program(int count, char** arguments) {
  std::uint64_t seed = 1, cases = 10, first = 0;
  std::string tell;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = arguments[i];
    if (option == "--tell")
      tell = arguments[i + 1];
    else
      (option == "--seed" ? seed : option == "--cases" ? cases : first) = std::strtoull(arguments[i + 1], nullptr, 10);
  }
  totals sum;
  const auto one = [&]<class Case>(Case) {
    if (!tell.empty()) {
      if (tell != Case::name) return;
      const verdict v = case_check<Case>(seed, case_number<Case>(first)).run();
      if (v.refused) std::printf("    // refused: %s\n", v.message.c_str());
      print_program<Case>(stdout, seed, first, v.program);
      return;
    }
    for (std::uint64_t k = first; k < first + cases; ++k) run_case<Case>(seed, k, false, sum);
  };
  (one(Cases{}), ...);
  if (tell.empty())
    std::fprintf(stderr,
                 "totals: %llu cases, %llu refused, %llu failed, %.0f of %.0f voxels compared with the reference\n",
                 static_cast<unsigned long long>(sum.cases), static_cast<unsigned long long>(sum.refused),
                 static_cast<unsigned long long>(sum.failed), sum.compared, sum.voxels);
  return sum.failed == 0 ? 0 : 1;
}

}  // namespace fuzz
