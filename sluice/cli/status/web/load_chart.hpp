#pragma once

#include <span>
#include <string>

#include "sluice/cli/status/server_sampler.hpp"
#include "sluice/cli/status/web/html_writer.hpp"

namespace sluice::cli {

/// One line of a chart.
struct chart_line {
    markup name;   // for people
    markup style;  // the class of the line in the style sheet
    double load_sample::* value;
};

/// A chart of the last minutes.
struct chart_plan {
    markup title;
    std::span<const chart_line> lines;
    /// Returns a value with its unit, for the axis.
    std::string (*text_of)(double value);
};

/// Draws a chart as SVG: time goes to the right, the latest sample is at the right end, and the
/// highest value of all lines is at the top. Pure function. Allocates: the document.
void draw_chart(html_writer& to, const chart_plan& plan, const load_history& history);

}  // namespace sluice::cli
