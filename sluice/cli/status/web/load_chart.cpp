#include "sluice/cli/status/web/load_chart.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::cli {

namespace {

// The drawing is in units of its view box, which the browser scales.
constexpr double width = 600;
constexpr double height = 120;
constexpr double margin = 4;

[[nodiscard]] double value_of(const chart_line& line, const load_sample& of) noexcept {
    const double value = of.*line.value;
    return std::isfinite(value) ? value : 0;
}

[[nodiscard]] double highest_of(const chart_plan& plan, const load_history& history) noexcept {
    double highest = 0;
    for (std::size_t i = 0; i != history.size(); ++i)
        for (const chart_line& line : plan.lines)
            highest = std::max(highest, value_of(line, history.at(i)));
    return highest;
}

void draw_line(html_writer& to, const chart_line& line, const load_history& history, double highest) {
    constexpr auto last = static_cast<double>(load_history::samples_max - 1);
    to.add("<polyline class=\"").add(line.style).add("\" points=\"");
    for (std::size_t i = 0; i != history.size(); ++i) {
        const double value = value_of(line, history.at(i));
        const double share = highest > 0 ? std::clamp(value / highest, 0.0, 1.0) : 0;
        const auto age = static_cast<double>(history.size() - 1 - i);
        to.decimal(width - age * width / last).add(",");
        to.decimal(height - margin - share * (height - 2 * margin)).add(" ");
    }
    to.add("\"/>");
}

}  // namespace

void draw_chart(html_writer& to, const chart_plan& plan, const load_history& history) {
    const double highest = highest_of(plan, history);
    to.add("<figure><figcaption><b>").add(plan.title).add("</b> <span>now");
    for (const chart_line& line : plan.lines) {
        const double now = history.size() == 0 ? 0 : value_of(line, history.at(history.size() - 1));
        to.add(" <i class=\"").add(line.style).add("\">").add(line.name).add("</i> ").text(plan.text_of(now));
    }
    to.add(", highest ").text(plan.text_of(highest)).add("</span></figcaption>");
    to.add("<svg viewBox=\"0 0 600 120\" role=\"img\" preserveAspectRatio=\"none\" aria-label=\"");
    to.add(plan.title).add("\">");
    to.add("<path class=\"grid\" d=\"M0 4H600M0 60H600M0 116H600\"/>");
    for (const chart_line& line : plan.lines)
        draw_line(to, line, history, highest);
    to.add("</svg></figure>");
}

}  // namespace sluice::cli
