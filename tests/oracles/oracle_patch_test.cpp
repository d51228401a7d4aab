// SPDX-License-Identifier: Apache-2.0
// Patches that cover a volume: their starts and windows against MONAI.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/oracle.hpp"
#include "suture/exec/cpu/run.hpp"
#include "suture/patch/reassemble.hpp"

namespace {

using namespace suture;

SUTURE_ORACLE_TEST(OraclePatch, DenseGridIsThatOfMonai, support::calls("monai.data.utils.dense_patch_slices")) {
  const auto three = [&](const char* key) {
    const auto v = c.params.at(key).get<std::vector<std::int64_t>>();
    return extent3{v.at(0), v.at(1), v.at(2)};
  };
  const double overlap = c.params.at("overlap").get<double>();
  const patch_grid g = dense_patch_grid(three("image_size"), three("patch_size"), {overlap, overlap, overlap});
  const auto expected = c.expected.get<std::vector<std::vector<std::int64_t>>>();
  ASSERT_EQ(g.count(), static_cast<std::int64_t>(expected.size()));
  const std::vector<extent3> all = g.all_starts();
  for (std::size_t p = 0; p < expected.size(); ++p)
    EXPECT_EQ(all[p], (extent3{expected[p][0], expected[p][1], expected[p][2]})) << p;
}

SUTURE_ORACLE_TEST(OraclePatch, GaussianWindowIsMonaisImportanceMap,
                   support::calls("monai.data.utils.compute_importance_map",
                                  [](const support::oracle_case& c) { return c.has("mode", "gaussian"); })) {
  const auto n = c.params.at("patch_size").get<std::vector<std::int64_t>>();
  const patch_window w = gaussian_window({n.at(0), n.at(1), n.at(2)}, c.params.at("sigma_scale").get<double>());
  const auto y = c.output<float>("y").values;
  const std::size_t nx = w.weight[2].size(), ny = w.weight[1].size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float zy = detail::product(w.weight[0][i / nx / ny], w.weight[1][i / nx % ny]);
    const float got = detail::window_weight(zy, w.weight[2][i % nx], w.least);
    ASSERT_NEAR(got, y[i], 1e-6f * y[i]) << i;
  }
}

}  // namespace
