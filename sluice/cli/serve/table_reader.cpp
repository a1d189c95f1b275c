#include "sluice/cli/serve/table_reader.hpp"

#include <fmt/core.h>

#include <sstream>
#include <utility>
#include <variant>

#include "sluice/cli/closest_word.hpp"

namespace sluice::cli {
namespace {

// Returns the value of a node, without white space that TOML does not need.
[[nodiscard]] setting_value value_of(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto is = node.value_exact<bool>()) return *is;
    if (const auto number = node.value_exact<std::int64_t>(); number and *number >= 0)
        return static_cast<std::uint64_t>(*number);
    std::ostringstream source;
    if (const toml::table* const table = node.as_table()) {
        toml::table copy = *table;
        copy.is_inline(true);
        source << copy;
    } else {
        node.visit([&](const auto& typed) { source << typed; });
    }
    std::string text = std::move(source).str();
    std::ranges::replace(text, '\n', ' ');
    return toml_source{std::move(text)};
}

}  // namespace

std::string anything(const std::string&) {
    return "";
}

table_reader::table_reader(const toml::table& table, std::string_view place, table_record& record,
                           std::vector<setting_problem>& problems)
    : table_(table), place_(place), record_(record), problems_(problems) {
    record_.line = table.source().begin.line;
}

void table_reader::take(std::string_view key, std::string& into, text_rule rule_of) {
    const bool was_given = is_given(into);
    if (const toml::node* const node = find(key)) read(*node, key, into, rule_of);
    record(key, setting_kind::text, was_given, into);
}

void table_reader::take(std::string_view key, bool& into) {
    const bool was_given = is_given(into);
    if (const toml::node* const node = find(key)) read(*node, key, into);
    record(key, setting_kind::boolean, was_given, into);
}

void table_reader::take(std::string_view key, std::vector<std::string>& into, text_rule rule_of) {
    const bool was_given = is_given(into);
    if (const toml::node* const node = find(key)) read(*node, key, into, rule_of);
    record(key, setting_kind::list, was_given, into);
}

void table_reader::take_unless_off(std::string_view key, bool& into) {
    const bool was_given = not into;
    if (const toml::node* const node = find(key)) {
        bool is_on = false;
        read(*node, key, is_on);
        into = into and is_on;
    }
    record(key, setting_kind::boolean, was_given, into);
}

void table_reader::take_switch(std::string_view key, std::string& into) {
    const bool was_given = is_given(into);
    std::string text;
    if (const toml::node* const node = find(key)) {
        read(*node, key, text, anything);
        if (not text.empty() and text != "on" and text != "off")
            refuse(*node, fmt::format("'{}' must be \"on\" or \"off\"", key));
    }
    if (into.empty()) into = std::move(text);
    record(key, setting_kind::on_off, was_given, into);
}

const toml::node* table_reader::find(std::string_view key) {
    const toml::node* const node = table_.get(key);
    if (record_.find(key) == nullptr and key != shares_key) {
        setting_record& fresh = record_.settings.emplace_back();
        fresh.key = key;
        if (node != nullptr) {
            fresh.origin = setting_origin::file;
            fresh.value = without_secrets(key, value_of(*node));
            fresh.line = node->source().begin.line;
        }
    }
    return node;
}

void table_reader::record(std::string_view key, setting_kind kind, bool was_given,
                          const setting_value& value) {
    (void)find(key);
    const auto setting = std::ranges::find(record_.settings, key, &setting_record::key);
    const toml::node* const node = table_.get(key);
    const bool is_list = std::holds_alternative<std::vector<std::string>>(value);
    setting->kind = kind;
    setting->origin = not was_given     ? setting_origin::file
                      : node == nullptr ? setting_origin::command_line
                      : is_list         ? setting_origin::both
                                        : setting_origin::command_line;
    if (node == nullptr and not was_given) setting->origin = setting_origin::unset;
    if (setting->origin != setting_origin::unset) setting->value = without_secrets(key, value);
    if (node == nullptr or node->as_array() == nullptr) return;
    setting->element_lines.clear();
    for (const toml::node& one : *node->as_array())
        setting->element_lines.push_back(one.source().begin.line);
}

void table_reader::refuse(const toml::node& node, std::string_view why) {
    const unsigned line = node.source().begin.line;
    std::string text = fmt::format("line {}: {}{}", line, place_, why);
    if (problem.empty()) problem = text;
    if (problems_.size() < configuration_record::problems_max) problems_.push_back({line, std::move(text)});
}

void table_reader::refuse_unknown(bool (*is_misplaced)(std::string_view), std::string_view where) {
    const std::vector<std::string> known = record_.keys();
    for (const auto& [key, node] : table_) {
        const std::string name(key.str());
        if (std::ranges::find(known, name) != known.end() or name == shares_key) continue;
        if (problems_.size() >= configuration_record::problems_max) return;
        refuse(node, fmt::format("unknown setting '{}'{}", name,
                                 is_misplaced(name) ? fmt::format("; write it {}", where)
                                                    : suggestion_for(name, known)));
    }
}

void table_reader::read(const toml::node& node, std::string_view key, std::string& into, text_rule rule_of) {
    const auto value = node.value<std::string>();
    if (not value) return refuse(node, fmt::format("invalid value for {}: use a string in quotes", key));
    if (check(node, key, *value, rule_of) and into.empty()) into = *value;
}

void table_reader::read(const toml::node& node, std::string_view key, bool& into) {
    const auto value = node.value<bool>();
    if (not value) return refuse(node, fmt::format("invalid value for {}: use true or false", key));
    into = into or * value;
}

void table_reader::read(const toml::node& node, std::string_view key, std::vector<std::string>& into,
                        text_rule rule_of) {
    const auto refuse_type = [&](const toml::node& one) {
        refuse(one, fmt::format("invalid value for {}: use a list of strings, as in [\"a\", \"b\"]", key));
    };
    const toml::array* const list = node.as_array();
    if (list == nullptr) return refuse_type(node);
    for (const toml::node& one : *list) {
        const auto text = one.value<std::string>();
        if (not text)
            refuse_type(one);
        else if (check(one, key, *text, rule_of))
            into.push_back(*text);
    }
}

std::uint64_t table_reader::read_number(const toml::node& node, std::string_view key, unsigned most) {
    const auto value = node.value<std::int64_t>();
    if (value and *value >= 0 and *value <= most) return static_cast<std::uint64_t>(*value);
    const std::string given = value ? fmt::format(" '{}'", *value) : "";
    refuse(node, fmt::format("invalid value{} for {}: use 0 to {}", given, key, most));
    return 0;
}

bool table_reader::check(const toml::node& node, std::string_view key, const std::string& value,
                         text_rule rule_of) {
    const std::string rule = rule_of(value);
    // A user may have a password, which must not be shown.
    const std::string shown = key == "user" ? "" : fmt::format(" '{}'", value);
    if (not rule.empty()) refuse(node, fmt::format("invalid value{} for {}: {}", shown, key, rule));
    return rule.empty();
}

}  // namespace sluice::cli
