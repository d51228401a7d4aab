// SPDX-License-Identifier: Apache-2.0
// As recipes.hpp: published recipes as a whole.
#pragma once

#include <suture/recipe/monai_brats.hpp>
#include <suture/recipe/monai_colon.hpp>
#include <suture/recipe/nnunet.hpp>

#include "samples.hpp"

namespace digest_test {

// Calls f(name, pipeline) for every recipe.
template <class F>
void for_each_published_recipe(const F& f) {
  const std::vector<extent3> starts{{-9, 2, 3}, {1, -5, 8}, {4, 9, -7}};

  f("nnunet_v2_8", nnunet_v2_8({.shape = {{16, 20, 24}}, .starts = starts, .label_outside = 7}) | cast<suture::half>{});
  f("nnunet_dummy_2d", nnunet_v2_8({.shape = {{6, 20, 24}}, .starts = starts, .label_outside = 7}));
  f("nnunet_v2_3", nnunet_v2_3({.shape = {{16, 20, 24}}, .starts = starts, .label_outside = 0}) | cast<bfloat16>{});
  f("nnunet_preprocess_ct",
    nnunet_preprocess_ct({.lower = -200, .upper = 310.5f, .mean = 40.25f, .standard_deviation = 91.7f}, {1.5, 1, 1}));
  f("nnunet_preprocess_across", nnunet_preprocess_across({1.5, 1, 1}));
  f("monai_brats", monai_brats({15, 16, 18}) | cast<suture::half>{});
  f("monai_colon_preprocess", monai_colon_preprocess({.start = {1, 2, 3}, .size = {14, 26, 33}}));
  f("monai_colon_training", monai_colon_training(starts));
}

}  // namespace digest_test
