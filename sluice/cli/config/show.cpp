#include "sluice/cli/config/show.hpp"

#include <fmt/core.h>

#include <string_view>
#include <variant>

#include "sluice/cli/status/json_writer.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

void append_settings(std::string& to, const effective_table& table, const std::string& file) {
    for (const effective_setting& each : table.settings) {
        const bool has_value = not std::holds_alternative<std::monostate>(each.value);
        const std::string what = has_value ? fmt::format("{} = {}", each.key, toml_text(each.value))
                                 : each.default_text.empty()
                                     ? fmt::format("# {}: not set", each.key)
                                     : fmt::format("# {}: {}", each.key, each.default_text);
        to += fmt::format("{:<40}  # {}\n", terminal_text(what), terminal_text(origin_text(each, file)));
    }
}

[[nodiscard]] std::string_view origin_name(effective_origin origin) noexcept {
    switch (origin) {
        case effective_origin::standard:
            return "default";
        case effective_origin::file:
            return "file";
        case effective_origin::command_line:
            return "command line";
        case effective_origin::environment:
            return "environment";
        case effective_origin::inherited:
            return "server";
    }
    return "";
}

void write_value(json_writer& json, const setting_value& value) {
    if (const auto* const is = std::get_if<bool>(&value))
        json.value(*is);
    else if (const auto* const number = std::get_if<std::uint64_t>(&value))
        json.value(*number);
    else if (const auto* const text = std::get_if<std::string>(&value))
        json.value(*text);
    else if (const auto* const source = std::get_if<toml_source>(&value))
        json.value(source->text);
    else if (const auto* const list = std::get_if<std::vector<std::string>>(&value)) {
        json.begin_array();
        for (const std::string& each : *list)
            json.value(each);
        json.end_array();
    } else {
        json.null();
    }
}

void write_settings(json_writer& json, const effective_table& table) {
    json.key("settings").begin_array();
    for (const effective_setting& each : table.settings) {
        json.begin_object().member("name", each.key).key("value");
        write_value(json, each.value);
        json.member("origin", origin_name(each.origin));
        if (not each.default_text.empty()) json.member("default", each.default_text);
        if (each.line != 0) json.member("line", each.line);
        if (not each.source.empty()) json.member("source", each.source);
        json.end_object();
    }
    json.end_array();
}

}  // namespace

std::string shown_text(const effective_configuration& all, const std::string& file) {
    std::string text;
    append_settings(text, all.server, file);
    for (const effective_table& each : all.shares) {
        text += "\n[[share]]\n";
        append_settings(text, each, file);
    }
    return text;
}

std::string shown_json(const effective_configuration& all, const std::string& file) {
    json_writer json;
    json.begin_object().member("file", file);
    write_settings(json, all.server);
    json.key("shares").begin_array();
    for (const effective_table& each : all.shares) {
        json.begin_object().member("name", each.name);
        write_settings(json, each);
        json.end_object();
    }
    json.end_array().end_object();
    return json.take();
}

}  // namespace sluice::cli
