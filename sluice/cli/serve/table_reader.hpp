#pragma once

#include <toml++/toml.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// A rule for texts: returns the rule that one violates, or an empty text.
using text_rule = std::string (*)(const std::string&);

/// Permits all texts.
[[nodiscard]] std::string anything(const std::string& text);

/// Returns whether a variable has a value that the command line gave.
[[nodiscard]] inline bool is_given(bool value) noexcept {
    return value;
}
[[nodiscard]] bool is_given(std::integral auto value) noexcept {
    return value != 0;
}
template <class Container>
    requires requires(const Container& value) { value.empty(); }
[[nodiscard]] bool is_given(const Container& value) noexcept {
    return not value.empty();
}

/// Reads settings from a table, and records them and all errors. An unknown key is an error: a
/// misspelled setting must not be ignored silently. A setting of the command line stays.
///
/// Thread safety: one thread. Allocates: records and texts. Blocks: nothing.
class table_reader {
public:
    /// `place` is the table, for messages: "[[share]]: ". The table and the records outlive the
    /// reader.
    table_reader(const toml::table& table, std::string_view place, table_record& record,
                 std::vector<setting_problem>& problems);

    /// Reads a setting into a variable, unless the command line gave that a value. A list is
    /// appended.
    void take(std::string_view key, std::string& into, text_rule rule_of = anything);
    void take(std::string_view key, bool& into);
    void take(std::string_view key, std::vector<std::string>& into, text_rule rule_of = anything);
    /// For a setting that is on by default: `false` of the command line stays.
    void take_unless_off(std::string_view key, bool& into);
    /// For "on" or "off".
    void take_switch(std::string_view key, std::string& into);
    template <class T>
    void take_number(std::string_view key, T& into, unsigned most) {
        const bool was_given = is_given(into);
        if (const toml::node* const node = find(key)) {
            const std::uint64_t number = read_number(*node, key, most);
            if (not was_given) into = static_cast<T>(number);
        }
        record(key, setting_kind::number, was_given, std::uint64_t{into});
    }

    /// Returns null if the table does not have the setting. Every setting is looked up here, so
    /// that it is known.
    [[nodiscard]] const toml::node* find(std::string_view key);
    /// Records the value in effect of a setting that its reader reads into a variable of its own.
    void record(std::string_view key, setting_kind kind, bool was_given, const setting_value& value);

    /// Records an error. The first one is in `problem`.
    void refuse(const toml::node& node, std::string_view why);
    /// Refuses all settings that were not looked up. `is_misplaced` returns whether the other kind
    /// of table has a setting, and `where` is the place of that kind.
    void refuse_unknown(bool (*is_misplaced)(std::string_view), std::string_view where);

    static constexpr std::string_view shares_key = "share";
    std::string problem;

private:
    void read(const toml::node& node, std::string_view key, std::string& into, text_rule rule_of);
    void read(const toml::node& node, std::string_view key, bool& into);
    void read(const toml::node& node, std::string_view key, std::vector<std::string>& into,
              text_rule rule_of);
    // Returns 0 after an error.
    [[nodiscard]] std::uint64_t read_number(const toml::node& node, std::string_view key, unsigned most);
    [[nodiscard]] bool check(const toml::node& node, std::string_view key, const std::string& value,
                             text_rule rule_of);

    const toml::table& table_;
    std::string_view place_;
    table_record& record_;
    std::vector<setting_problem>& problems_;
};

}  // namespace sluice::cli
