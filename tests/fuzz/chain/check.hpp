// SPDX-License-Identifier: Apache-2.0
// A case on the CPU: every way to run it must give the same bits, and a reference in double what they stand for.
#pragma once

#include <numeric>

#include "digest/host_backend.hpp"
#include "support/guarded_memory.hpp"
#include "suture/plan/source_box.hpp"
#include "suture/replay/json.hpp"
#include "verdict.hpp"

namespace fuzz {

struct host : digest_test::host_backend {
  int threads = 1;
  suture::cpu exec(std::size_t) { return {.threads = threads}; }
};

// Where two results differ first, in words.
template <class T>
std::string difference(const std::vector<T>& a, const std::vector<T>& b, const suture::extent3& n) {
  if (a.size() != b.size()) return "in size";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    const auto at = static_cast<std::int64_t>(i);
    char text[160];
    std::snprintf(text, sizeof text, "channel %lld, voxel (%lld, %lld, %lld): %.9g and %.9g",
                  static_cast<long long>(at / (n[0] * n[1] * n[2])), static_cast<long long>(at / (n[1] * n[2]) % n[0]),
                  static_cast<long long>(at / n[2] % n[1]), static_cast<long long>(at % n[2]),
                  static_cast<double>(suture::storage<T>::load(a[i])),
                  static_cast<double>(suture::storage<T>::load(b[i])));
    return text;
  }
  return "nowhere";
}

template <class Case>
class case_check {
  using In = typename Case::element;
  using Label = typename Case::label;
  using LabelOut = typename Case::label_out;
  using Batch = batch<Case, host>;

public:
  case_check(std::uint64_t seed, std::uint64_t number)
      : numbers_(seed, number), all_(numbers_, Case::color, Case::labels_have_channels) {}

  verdict run() {
    return verdict_of([&](verdict& v) { check_all(v); });
  }

private:
  void check_all(verdict& v) {
    std::vector<std::size_t> order(all_.grids.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    host home;
    Batch whole(home, numbers_, all_, order);
    const auto chain = whole.chain();
    whole.conversion();
    v.program = whole.made->written(Case::text);
    const auto plan = suture::plan(chain, whole.images, whole.how);
    bool clean = true;
    const auto on = [&](Batch& b, const auto& p, int threads, const memory_layout& out, const memory_layout& labels) {
      return run_batch(b, p, out, labels, clean,
                       [&](const auto&... bindings) { suture::run(suture::cpu{.threads = threads}, p, bindings...); });
    };
    const auto first = on(whole, plan, 1, all_.out_layout, all_.label_out_layout);
    v.digest = digest_of(first);
    const auto expect = [&](const char* what, const auto& results, const std::vector<std::size_t>& from) {
      for (std::size_t k = 0; k < from.size(); ++k) {
        const auto &a = first[from[k]], &b = results[k];
        const suture::extent3& n = plan.output_grid(from[k]).extents;
        const std::string sample = ": sample " + std::to_string(from[k]) + ", ";
        if (!same_bits(a.image, b.image)) v.failures.push_back(what + sample + difference(a.image, b.image, n));
        if (!same_bits(a.labels, b.labels))
          v.failures.push_back(what + sample + "labels, " + difference(a.labels, b.labels, n));
        if (!same_bits(a.level, b.level))
          v.failures.push_back(what + sample + "level, " + difference(a.level, b.level, {1, 1, std::ssize(a.level)}));
      }
    };
    const memory_layout dense = memory_layout::dense();
    expect("three threads and dense outputs", on(whole, plan, 3, dense, dense), order);

    for (const std::size_t i : order) {  // each alone
      host own;
      Batch b(own, numbers_, all_, {i});
      const auto alone = suture::plan(b.chain(), b.images, b.how);
      expect("a sample alone", on(b, alone, 2, dense, dense), {i});
    }
    if (order.size() > 1) {
      host own;
      std::vector<std::size_t> turned(order.rbegin(), order.rend());
      Batch b(own, numbers_, all_, turned);
      expect("another order", on(b, suture::plan(b.chain(), b.images, b.how), 1, dense, dense), turned);
    }
    check_boxes(v, whole, plan, first, on, expect, order);
    check_replay(v, whole, chain, plan, on, expect, order);
    check_evaluator(v, whole, plan, first);
    if (!clean) v.failures.push_back("elements beside those of an output view were written");
    check_reference(v, whole, plan, first);
  }

  // Of each image and label map the box that its sample reads, in memory that ends where the box does.
  template <class Plan, class Results, class On, class Expect>
  void check_boxes(verdict& v, Batch& whole, const Plan& plan, const Results& first, const On& on, const Expect& expect,
                   const std::vector<std::size_t>& order) {
    const auto images = whole.images;
    const auto maps = whole.maps;
    for (const bool at_end : {true, false}) {
      std::vector<guarded_memory> memory;
      const auto place = [&]<class T>(const std::vector<T>& values) {
        memory.emplace_back(values.size() * sizeof(T), at_end);
        return static_cast<T*>(std::memcpy(memory.back().data(), values.data(), values.size() * sizeof(T)));
      };
      for (std::size_t i = 0; i < plan.size(); ++i) {
        const suture::voxel_box box = suture::source_box(plan, i);
        whole.images[i] = boxed(images[i], box, all_.in_layout, place);
        whole.maps[i] = boxed(maps[i], box, all_.label_layout, place);
      }
      expect("boxes of the sources alone", on(whole, plan, 2, all_.out_layout, memory_layout::dense()), order);
      check_evaluator(v, whole, plan, first);
      whole.images = images;
      whole.maps = maps;
    }
  }
  template <class Chain, class Plan, class On, class Expect>
  void check_replay(verdict& v, Batch& whole, const Chain& chain, const Plan& plan, const On& on, const Expect& expect,
                    const std::vector<std::size_t>& order) {
    const std::string text = suture::to_json(plan).dump();
    const auto again = suture::plan_from_json(chain, nlohmann::ordered_json::parse(text));
    expect("the plan read back from JSON", on(whole, again, 1, memory_layout::dense(), memory_layout::dense()), order);
    if (suture::to_json(again).dump() != text) v.failures.push_back("a plan read back from JSON writes another JSON");
  }

  // Lone voxels, all of a small result and some of a large one.
  template <class Plan, class Results>
  void check_evaluator(verdict& v, Batch& whole, const Plan& plan, const Results& first) {
    using Out = result_of<Plan>;
    bool clean = true;
    run_batch(whole, plan, memory_layout::dense(), memory_layout::dense(), clean, [&](const auto&... bindings) {
      const std::size_t bytes = suture::workspace_bytes(plan, bindings...);
      const std::align_val_t alignment{256};
      auto* const space = static_cast<std::byte*>(::operator new(bytes + 1, alignment));
      const auto evaluate = suture::prepare(suture::cpu{.threads = 2, .workspace = {space, bytes}}, plan, bindings...);
      for (std::size_t i = 0; i < plan.size() && v.failures.empty(); ++i) {
        const suture::extent3& n = plan.output_grid(i).extents;
        const std::int64_t voxels = n[0] * n[1] * n[2], channels = whole.images[0].channels;
        const std::int64_t step = voxels * channels <= 2000 ? 1 : voxels * channels / 1500;
        for (std::int64_t e = 0; e < voxels * channels; e += step) {
          const std::int64_t at =
              step == 1 ? e : e + numbers_.below(std::min(step, voxels * channels - e), 2000, static_cast<int>(e));
          const auto c = static_cast<std::int32_t>(at / voxels),
                     z = static_cast<std::int32_t>(at / (n[1] * n[2]) % n[0]),
                     y = static_cast<std::int32_t>(at / n[2] % n[1]), x = static_cast<std::int32_t>(at % n[2]);
          const auto item = static_cast<std::int32_t>(i);
          Out alone{};
          if constexpr (requires { evaluate(item, z, y, x).c; })
            alone = evaluate(item, z, y, x).c[c];
          else
            alone = evaluate(item, z, y, x, c);
          const Out& expected = first[i].image[static_cast<std::size_t>(at)];
          if (std::memcmp(&alone, &expected, sizeof alone) != 0) {
            std::vector<Out> one(first[i].image);
            one[static_cast<std::size_t>(at)] = alone;
            v.failures.push_back("the evaluator of a lone voxel: sample " + std::to_string(i) + ", " +
                                 difference(first[i].image, one, n));
            break;
          }
          if (c > 0) continue;
          const std::int64_t label_channels = std::ssize(first[i].labels) / voxels;
          for (std::int32_t k = 0; k < label_channels; ++k) {
            const auto label = static_cast<LabelOut>(evaluate.template get<1>(item, z, y, x, k));
            if (std::memcmp(&label, &first[i].labels[static_cast<std::size_t>(k * voxels + at)], sizeof label) != 0) {
              v.failures.push_back("the evaluator of a lone label: sample " + std::to_string(i));
              e = voxels * channels;
              break;
            }
          }
        }
      }
      ::operator delete(space, alignment);
    });
  }

  template <class Plan, class Results>
  void check_reference(verdict& v, Batch& whole, const Plan& plan, const Results& first);

  numbers numbers_;
  inputs<In, Label> all_;
};

}  // namespace fuzz

#include "reference.hpp"
