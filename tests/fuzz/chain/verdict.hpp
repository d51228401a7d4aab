// SPDX-License-Identifier: Apache-2.0
// What is said of a case.
#pragma once

#include "batch.hpp"
#include "suture/plan/source_box.hpp"

namespace fuzz {

struct verdict {
  std::uint64_t digest = 0;
  bool refused = false;
  std::string message;                // of the refusal
  std::vector<std::string> failures;  // a sentence each
  std::string program;                // the chain as it is written
  double compared = 0, voxels = 0;    // with the reference
};

// Draws what a conversion is made with, to be written.
struct host_of_text : numbers {};

// Runs f(verdict); what the library refuses becomes the verdict.
template <class F>
verdict verdict_of(const F& f) {
  verdict v;
  try {
    f(v);
  } catch (const suture::error& e) {
    v.refused = true;
    v.message = e.what();
    v.digest = 0;
    for (const char c : v.message) v.digest = suture::mix64(v.digest ^ static_cast<std::uint64_t>(c));
  }
  return v;
}

// A case on one executor, once: run(plan, bytes of workspace, bindings...).
template <class Case, class Backend, class Run>
verdict digest_alone(std::uint64_t seed, std::uint64_t number, Backend& backend, const Run& run) {
  return verdict_of([&](verdict& v) {
    numbers n(seed, number);
    const inputs<typename Case::element, typename Case::label> all(n, Case::color, Case::labels_have_channels);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < all.grids.size(); ++i) order.push_back(i);
    batch<Case, Backend> whole(backend, n, all, order);
    const auto chain = whole.chain();
    v.program = whole.made->written(Case::text);
    const auto plan = suture::plan(chain, whole.images, whole.how);
    bool clean = true;
    const auto made = [&] {
      return digest_of(run_batch(whole, plan, all.out_layout, all.label_out_layout, clean,
                                 [&](const auto&... bindings) { run(plan, bindings...); }));
    };
    v.digest = made();
    const auto place = [&](const auto& values) { return backend.place(values); };
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const suture::voxel_box box = suture::source_box(plan, i);
      const auto& g = all.grids[i];
      whole.images[i] =
          boxed(all.in_layout.template view<const typename Case::element>(all.images[i].data(), g, all.channels), box,
                all.in_layout, place);
      whole.maps[i] =
          boxed(all.label_layout.template view<const typename Case::label>(all.labels[i].data(), g, all.label_channels),
                box, all.label_layout, place);
    }
    if (made() != v.digest) v.failures.push_back("boxes of the sources alone give other bits");
    if (!clean) v.failures.push_back("elements beside those of an output view were written");
  });
}

}  // namespace fuzz
