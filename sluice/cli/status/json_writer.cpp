#include "sluice/cli/status/json_writer.hpp"

#include <fmt/core.h>

#include <cmath>

#include "sluice/base/json_string.hpp"

namespace sluice::cli {

void json_writer::separate() {
    if (needs_comma_) text_ += ',';
}

json_writer& json_writer::open(char bracket) {
    separate();
    text_ += bracket;
    needs_comma_ = false;
    return *this;
}

json_writer& json_writer::close(char bracket) {
    text_ += bracket;
    needs_comma_ = true;
    return *this;
}

json_writer& json_writer::raw(std::string_view text) {
    separate();
    text_ += text;
    needs_comma_ = true;
    return *this;
}

json_writer& json_writer::key(std::string_view name) {
    separate();
    append_json_string(text_, name);
    text_ += ':';
    needs_comma_ = false;
    return *this;
}

json_writer& json_writer::value(std::string_view text) {
    separate();
    append_json_string(text_, text);
    needs_comma_ = true;
    return *this;
}

json_writer& json_writer::value(bool is) {
    return raw(is ? "true" : "false");
}

json_writer& json_writer::value(double number) {
    return std::isfinite(number) ? raw(fmt::format("{:.1f}", number)) : null();
}

}  // namespace sluice::cli
