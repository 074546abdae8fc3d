// Results as a drawing: a panel for latency, one for bandwidth, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "axis.hpp"
#include "output.hpp"

namespace verbatim::perf {
namespace {

constexpr double panel_width = 620;
constexpr double panel_height = 530;
constexpr double title_height = 64;
constexpr double left_margin = 78;
constexpr double right_margin = 24;
constexpr double bottom_margin = 122;  // labels and the legend
constexpr double top_margin = 30;
constexpr std::size_t legend_columns = 3;
constexpr double legend_line_height = 18;
constexpr std::string_view reference_colour = "#777777";

enum class Stroke : std::uint8_t { solid, dashed };

struct Series {
  std::string name;
  std::string_view colour;
  Stroke stroke = Stroke::solid;
  std::map<double, double> values;  // by size
};

struct Panel {
  std::string heading;
  std::string unit;
  std::vector<Series> series;
};

std::string_view colour_of(TestKind test) {
  constexpr std::array<std::string_view, 8> colours{"#1f77b4", "#1f77b4", "#d62728", "#9467bd",
                                                    "#ff7f0e", "#ff7f0e", "#2ca02c", "#2ca02c"};
  return colours[static_cast<std::size_t>(test)];
}

// A device's name and a peer's address may hold anything.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

// Adds what `value` says of each result that it says something of; sizes of 0 have no place on a logarithmic axis.
template <typename Value>
void add_series(Panel& panel, const Results& results, std::string name, std::string_view colour, Stroke stroke,
                Value value) {
  Series series{std::move(name), colour, stroke, {}};
  for (const PointResult& result : results.points) {
    const std::optional<double> y = result.point.bytes > 0 ? value(result) : std::nullopt;
    if (y && *y > 0) series.values[static_cast<double>(result.point.bytes)] = *y;
  }
  if (!series.values.empty()) panel.series.push_back(std::move(series));
}

Panel latency_panel(const Results& results) {
  constexpr double us = 1e-3;
  Panel panel{"Latency", "µs", {}};
  for (const TestTraits& test : all_tests()) {
    if (test.figure != Figure::latency) continue;
    const auto of_test = [kind = test.kind](double Distribution::*value) {
      return [=](const PointResult& r) {
        return r.point.test == kind ? std::optional(r.latency_ns.*value * us) : std::nullopt;
      };
    };
    const auto name = std::string(test.name);
    add_series(panel, results, name + ", p50", colour_of(test.kind), Stroke::solid, of_test(&Distribution::p50));
    add_series(panel, results, name + ", p99", colour_of(test.kind), Stroke::dashed, of_test(&Distribution::p99));
  }
  add_series(panel, results, "cache line handover", reference_colour, Stroke::dashed,
             [](const PointResult& r) -> std::optional<double> {
               if (!r.is_latency() || !r.yardstick) return std::nullopt;
               return r.yardstick->handover_ns * us;
             });
  return panel;
}

Panel bandwidth_panel(const Results& results) {
  constexpr double MB = 1e-6;
  Panel panel{"Bandwidth", "MB/s", {}};
  for (const TestTraits& test : all_tests()) {
    if (test.figure != Figure::bandwidth) continue;
    add_series(panel, results, std::string(test.name), colour_of(test.kind), Stroke::solid, [&](const PointResult& r) {
      return r.point.test == test.kind ? std::optional(r.bytes_per_second() * MB) : std::nullopt;
    });
  }
  add_series(panel, results, "memcpy, one core", reference_colour, Stroke::dashed,
             [](const PointResult& r) -> std::optional<double> {
               if (r.is_latency() || !r.yardstick) return std::nullopt;
               return r.yardstick->memcpy_bytes_per_second * MB;
             });
  return panel;
}

struct Range {
  double low = std::numeric_limits<double>::max();
  double high = 0;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

struct Frame {
  LogAxis x;
  LogAxis y;
  double left, right, top, bottom;
};

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, std::string_view extra = {}) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>)"
                     "\n",
                     x, y, anchor, extra, escaped(text));
}

std::string line_between(double x1, double y1, double x2, double y2, std::string_view colour) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>)"
                     "\n",
                     x1, y1, x2, y2, colour);
}

std::string draw_axes(const Panel& panel, const Frame& frame, const std::vector<Tick>& x_ticks,
                      const std::vector<Tick>& y_ticks) {
  constexpr std::string_view grid_colour = "#dddddd";
  std::string svg;
  for (const Tick& tick : x_ticks) {
    const double x = frame.x.at(tick.value);
    svg += line_between(x, frame.top, x, frame.bottom, grid_colour);
    svg += text_at(x, frame.bottom + 18, "middle", tick.label, R"( font-size="11")");
  }
  for (const Tick& tick : y_ticks) {
    const double y = frame.y.at(tick.value);
    svg += line_between(frame.left, y, frame.right, y, grid_colour);
    svg += text_at(frame.left - 8, y + 4, "end", tick.label);
  }
  svg += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="none" stroke="#333333"/>)"
                     "\n",
                     frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
  const double middle = (frame.left + frame.right) / 2;
  svg += text_at(middle, frame.top - 10, "middle", panel.heading + ", " + panel.unit, R"( font-weight="bold")");
  return svg + text_at(middle, frame.bottom + 42, "middle", "message size, bytes");
}

std::string_view dashes(Stroke stroke) {
  return stroke == Stroke::dashed ? R"( stroke-dasharray="6 4")" : "";
}

std::string draw_series(const Series& series, const Frame& frame) {
  std::string points;
  std::string marks;
  for (const auto& [bytes, value] : series.values) {
    const double x = frame.x.at(bytes);
    const double y = frame.y.at(value);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    marks += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>)"
                         "\n",
                         x, y, series.colour);
  }
  return fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"{}/>)"
                     "\n",
                     points, series.colour, dashes(series.stroke)) +
         marks;
}

// Below the panel, where no line can run behind it.
std::string draw_legend(const Panel& panel, const Frame& frame) {
  constexpr double sample_width = 28;
  const double column_width = (frame.right - frame.left) / legend_columns;
  std::string svg;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    const double x = frame.left + column_width * static_cast<double>(i % legend_columns);
    const double y = frame.bottom + 66 + legend_line_height * static_cast<double>(i / legend_columns);
    svg += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="2"{}/>)"
                       "\n",
                       x, y, x + sample_width, y, series.colour, dashes(series.stroke));
    svg += text_at(x + sample_width + 8, y + 4, "start", series.name);
  }
  return svg;
}

std::string draw_panel(const Panel& panel, double origin) {
  Range sizes;
  Range values;
  for (const Series& series : panel.series) {
    for (const auto& [bytes, value] : series.values) sizes.include(bytes), values.include(value);
  }
  const DecimalScale scale = decimal_scale(values.low, values.high);
  const double left = origin + left_margin;
  const double right = origin + panel_width - right_margin;
  const double top = title_height + top_margin;
  const double bottom = title_height + panel_height - bottom_margin;
  constexpr double inset = 16;  // the first and last marks keep off the frame
  const Frame frame{LogAxis(sizes.low, sizes.high, left + inset, right - inset),
                    LogAxis(scale.low, scale.high, bottom, top),
                    left,
                    right,
                    top,
                    bottom};
  std::string svg = draw_axes(panel, frame, size_ticks(sizes.low, sizes.high), scale.ticks);
  for (const Series& series : panel.series) svg += draw_series(series, frame);
  return svg + draw_legend(panel, frame);
}

}  // namespace

std::string to_svg(const Results& results) {
  std::vector<Panel> panels;
  for (Panel& panel : std::array{latency_panel(results), bandwidth_panel(results)}) {
    if (!panel.series.empty()) panels.push_back(std::move(panel));
  }
  const double width = panel_width * static_cast<double>(std::max<std::size_t>(panels.size(), 1));
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" )"
      R"(font-family="sans-serif" font-size="13">)"
      "\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, title_height + panel_height);
  svg += text_at(width / 2, 28, "middle", "verbatim-perf " VERBATIM_VERSION, R"( font-size="18" font-weight="bold")");
  svg += text_at(width / 2, 50, "middle", describe(results.conditions), R"( fill="#444444")");
  double origin = 0;
  for (const Panel& panel : panels) {
    svg += draw_panel(panel, origin);
    origin += panel_width;
  }
  return svg + "</svg>\n";
}

}  // namespace verbatim::perf
