// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <cmath>

#include "common/drawing.hpp"

namespace suture::examples {
namespace {

constexpr color paper{1, 1, 1}, ink{.1, .1, .1}, faint{.85, .85, .85}, alarm{.80, .10, .10};
constexpr double left = 96, right = 24, top = 56, lane = 40, bar = 26, width = 1100;

struct lane_of {
  const char* name;
  color fill;
  double feed_times::*begin;
  double feed_times::*end;
};
const lane_of lanes[] = {{"read", {.34, .71, .91}, &feed_times::read_begin, &feed_times::read_end},
                         {"copy", {.94, .89, .26}, &feed_times::copy_begin, &feed_times::copy_end},
                         {"compute", {.90, .62, 0}, &feed_times::run_begin, &feed_times::run_end},
                         {"step", {0, .72, .52}, &feed_times::delivered, &feed_times::released}};

// A round number of seconds between the marks of an axis of at most ten.
double mark_every(double seconds) {
  const double power = std::pow(10, std::floor(std::log10(std::max(seconds, 1e-6) / 10)));
  for (const double k : {1., 2., 5., 10.})
    if (seconds / (k * power) <= 10) return k * power;
  return 10 * power;
}

}  // namespace

void write_timeline(const std::filesystem::path& path, const std::string& title,
                    const std::vector<feed_times>& batches) {
  const bool copies = std::any_of(batches.begin(), batches.end(), [](const feed_times& t) { return t.copy_end > 0; });
  std::vector<lane_of> shown;
  for (const lane_of& l : lanes)
    if (copies || l.begin != &feed_times::copy_begin) shown.push_back(l);
  double end = 1e-3;
  for (const feed_times& t : batches) end = std::max(end, t.released);
  const double height = top + lane * static_cast<double>(shown.size()) + 48, scale = (width - left - right) / end;
  const page p(width, height, paper);
  cairo_t* const c = p.drawing.get();
  text(c, 16, 26, 15, title, ink, true);

  const double bottom = top + lane * static_cast<double>(shown.size());
  const double every = mark_every(end);
  for (double at = 0; at <= end; at += every) {
    const double x = left + at * scale;
    set_color(c, faint);
    cairo_set_line_width(c, 1);
    cairo_move_to(c, x, top);
    cairo_line_to(c, x, bottom);
    cairo_stroke(c);
    const std::string label = std::to_string(std::lround(at * 1000)) + (at == 0 ? " ms" : "");
    set_font(c, 11);
    text(c, x - width_of(c, label) / 2, bottom + 16, 11, label, ink);
  }
  for (std::size_t l = 0; l < shown.size(); ++l) {
    const double y = top + lane * static_cast<double>(l) + (lane - bar) / 2;
    text(c, 16, y + bar / 2 + 5, 13, shown[l].name, ink);
    for (const feed_times& t : batches) {
      const double from = left + t.*shown[l].begin * scale;
      const double wide = std::max(1.5, (t.*shown[l].end - t.*shown[l].begin) * scale);
      set_color(c, shown[l].fill, t.step % 2 == 0 ? 1 : .6);
      cairo_rectangle(c, from, y, wide, bar);
      cairo_fill(c);
      const std::string number = std::to_string(t.step);
      set_font(c, 11);
      if (wide > width_of(c, number) + 4) text(c, from + 3, y + bar / 2 + 4, 11, number, ink);
      if (shown[l].begin == &feed_times::delivered && t.waited * scale >= .5) {
        // A device computes in the stream of the step, which waits ahead of that.
        const double waited_until = copies ? t.run_begin : t.delivered;
        set_color(c, alarm);
        cairo_rectangle(c, left + (waited_until - t.waited) * scale, y + bar / 2 - 3, t.waited * scale, 6);
        cairo_fill(c);
      }
    }
  }
  text(c, left, height - 10, 11, "numbers: batches; red: the step waits for its batch", ink);
  write_png(path, p.pixels.get());
}

}  // namespace suture::examples
