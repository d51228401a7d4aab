// SPDX-License-Identifier: Apache-2.0
// What a chain is made with beside its numbers: fits of the batch it is for, on the executor that is to run it, starts,
// grids and plans.
#pragma once

#include <memory>

#include "inputs.hpp"

namespace fuzz {

template <class Backend, class In, class Label>
class context : public numbers {
public:
  context(const numbers& n, Backend& backend, const std::vector<suture::view<const In>>& images,
          const std::vector<suture::view<const Label>>& maps, const std::vector<std::uint64_t>& ids)
      : numbers(n), backend_(backend), images_(images), maps_(maps), ids_(ids) {
    for (auto& map : maps_) map.channels = 1;
  }

  std::int32_t channels() const { return static_cast<std::int32_t>(images_[0].channels); }

  std::span<const suture::moments> moments(int slot) {
    const suture::fit_moments how{.ddof = static_cast<std::int32_t>(below(2, slot))};
    return fitted(how, suture::inside(maps_), images_.size() * static_cast<std::size_t>(channels()));
  }
  std::span<const suture::intensity_range> ranges(int slot) {
    const double lower[] = {0, 0, .5, 25}, upper[] = {100, 99.5, 75};
    const suture::fit_range how{.lower = lower[below(4, slot)], .upper = upper[below(3, slot, 1)]};
    return fitted(how, suture::everything{}, images_.size() * static_cast<std::size_t>(channels()));
  }
  std::span<const suture::landmark_map<4>> landmarks(int) {
    const suture::fit_landmarks<4> how{.q = {1, 30, 60, 99}, .target = {0, 10, 50, 100}};
    return fitted(how, suture::nonzero{}, images_.size() * static_cast<std::size_t>(channels()));
  }
  std::span<const suture::moments> color_gray(int) {
    return fitted(suture::fit_moments{}, suture::everything{}, images_.size() * 3);
  }
  template <class Space>
  std::span<const suture::color_moments<Space>> colors(int slot) {
    return fitted(suture::fit_color_moments<Space>{.ddof = static_cast<std::int32_t>(below(2, slot))},
                  suture::everything{}, images_.size());
  }
  std::span<const suture::stain_basis> stains(int slot) {
    const suture::fit_macenko hows[] = {suture::macenko::standard.fit, suture::macenko::torchstain.fit,
                                        suture::macenko::staintools.fit, suture::macenko::cucim.fit};
    return fitted(hows[below(4, slot)], suture::everything{}, images_.size());
  }

  std::array<float, 56> coefficients(int slot) const {
    std::array<float, 56> c{};
    for (std::size_t i = 0; i < 20; ++i) c[i] = static_cast<float>(below(65, slot, static_cast<int>(i)) - 32) / 64;
    return c;
  }
  std::array<suture::coarse_dropout::hole, 32> holes(int slot) const {
    std::array<suture::coarse_dropout::hole, 32> h{};
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) {
        h[static_cast<std::size_t>(i)].start[k] = static_cast<std::int32_t>(below(12, slot, 6 * i + k)) - 2;
        h[static_cast<std::size_t>(i)].size[k] = static_cast<std::int32_t>(below(9, slot, 6 * i + k + 3));
      }
    return h;
  }
  std::span<const suture::extent3> starts(int slot) {
    auto all = std::make_shared<std::vector<suture::extent3>>();
    for (const std::uint64_t id : ids_) {
      const numbers own(id, bits(slot));
      all->push_back({own.below(12, 0) - 3, own.below(12, 1) - 3, own.below(24, 2) - 6});
    }
    kept_.push_back(all);
    return *all;
  }
  suture::grid target(int slot) const {
    suture::grid g{.extents = edge_sizes[below(std::ssize(edge_sizes), slot)]};
    for (int k = 0; k < 3; ++k) {
      g.spacing[k] = 1 + static_cast<double>(below(5, slot, 1 + k)) / 4;
      g.origin[k] = static_cast<double>(below(80, slot, 4 + k)) - 50;
    }
    if (below(2, slot, 7) == 0) g.direction = {{{.8, 0, -.6}, {0, 1, 0}, {.6, 0, .8}}};
    return g;
  }
  // A plan on the grids of the batch that keeps them.
  template <class Chain>
  const auto& plan_to_undo(const Chain& chain) {
    using planned = decltype(suture::plan(chain, images_, {}));
    auto p = std::make_shared<planned>(
        suture::plan(chain, images_, {.seed = bits(999), .sample_ids = ids_, .same_ids = true}));
    kept_.push_back(p);
    return *p;
  }

private:
  template <class Fit, class Selection>
  auto fitted(const Fit& how, const Selection& selection, std::size_t count) {
    using result = typename Fit::result;
    const std::span<result> results(backend_.template room<result>(count), count);
    suture::fit(backend_.exec(std::size_t{1} << 25), how, images_, selection, results);
    return std::span<const result>(results);
  }

  Backend& backend_;
  std::vector<suture::view<const In>> images_;
  std::vector<suture::view<const Label>> maps_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace fuzz
