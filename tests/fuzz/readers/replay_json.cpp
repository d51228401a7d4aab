// SPDX-License-Identifier: Apache-2.0
// The bytes are the record of a plan. One that is accepted is written and read back as the same, and can be run.
#include "fuzz.hpp"
#include "recipe.hpp"

namespace {

using namespace suture;
using fuzz::must_hold;

void run_it(const planned<std::remove_const_t<decltype(as_chain(fuzz::recipe()))>>& plan) {
  std::vector<std::vector<std::int16_t>> in;
  std::vector<std::vector<float>> out;
  std::vector<view<const std::int16_t>> sources;
  std::vector<view<float>> results;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const grid& from = plan.source_grid(i);
    const grid& to = plan.output_grid(i);
    if (from.voxels() > 4096 || to.voxels() > 4096 || i == 4) return;
    in.emplace_back(static_cast<std::size_t>(from.voxels()), std::int16_t{100});
    out.emplace_back(static_cast<std::size_t>(to.voxels()));
    sources.push_back(contiguous<const std::int16_t>(in.back().data(), from));
    results.push_back(contiguous(out.back().data(), to));
  }
  if (plan.control_vectors() > 100000) return;
  run(cpu{.threads = 1}, plan, image(sources, results));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nlohmann::ordered_json document;
  try {
    document = nlohmann::ordered_json::parse(data, data + size);
  } catch (const nlohmann::ordered_json::exception&) {
    return 0;
  }
  fuzz::accepted([&] {
    const auto plan = plan_from_json(fuzz::recipe(), document);
    const auto once = to_json(plan);
    must_hold(fuzz::accepted([&] {
                must_hold(to_json(plan_from_json(fuzz::recipe(), once)).dump() == once.dump(),
                          "an accepted plan reads back as it is written");
              }),
              "what is written of an accepted plan is accepted");
    run_it(plan);
  });
  return 0;
}
