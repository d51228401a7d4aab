// SPDX-License-Identifier: Apache-2.0
#include "sheet.hpp"

#include <algorithm>
#include <sstream>

namespace suture::examples {
namespace {

label_volume none_on(const grid& g) { return {g, std::vector<std::uint8_t>(static_cast<std::size_t>(g.voxels()))}; }

std::string size_of(const grid& g) {
  std::ostringstream text;
  text.precision(3);
  text << g.extents[0] << " x " << g.extents[1] << " x " << g.extents[2] << " voxels of " << g.spacing[0] << " x "
       << g.spacing[1] << " x " << g.spacing[2] << " mm (z, y, x)";
  return text.str();
}

}  // namespace

void write_case_sheet(const std::filesystem::path& path, const std::string& title, const prepared_case& source,
                      const resampled& result, const ct_normalize& normalize, const gray_window& shown) {
  const bool labeled = !source.labels.voxels.empty();
  sheet_row row;
  const grid &from = grid_of(source.image), &to = result.image.grid;
  row.caption = size_of(from) + "   to   " + size_of(to);

  row.before.image = {from, std::vector<float>(static_cast<std::size_t>(from.voxels()))};
  std::visit(
      [&](const auto& v) {
        std::transform(v.voxels.begin(), v.voxels.end(), row.before.image.voxels.begin(),
                       [&](auto x) { return shown(static_cast<double>(x)); });
      },
      source.image);
  row.before.labels = labeled ? source.labels : none_on(from);
  row.before.body = source.body;

  row.after.image = result.image;
  const double mean = normalize.mean, deviation = normalize.standard_deviation;
  for (float& x : row.after.image.voxels) x = shown(static_cast<double>(x) * deviation + mean);
  row.after.labels = labeled ? result.labels : none_on(to);
  row.after.body = labels_on(source.body, to);

  contact_sheet sheet;
  sheet.tile = 400;
  sheet.title = "CT, " + words_of(shown, "HU") + ": " + title;
  sheet.before = "the scan, oriented";
  sheet.after = "cropped to the body, normalized, resampled";
  sheet.rows.push_back(std::move(row));
  write_contact_sheet(path, sheet);
}

}  // namespace suture::examples
