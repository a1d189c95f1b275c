#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::cli {

// A record of what the reader of the configuration has read. The reader makes one entry for each
// setting that it knows, also for those that the file does not have. So the record of an empty file
// is the list of all settings, and no second list has to follow the reader.
//
// Thread safety: values. All functions allocate; none blocks.

/// The type of the value of a setting in the file. `other`: the reader examines the value itself.
enum class setting_kind : std::uint8_t { text, boolean, number, list, on_off, other };

/// Where a value comes from. `both`: a list with parts of the command line and of the file.
enum class setting_origin : std::uint8_t { unset, file, command_line, both };

/// A value in the syntax of TOML, in one line.
struct toml_source {
    std::string text;
    bool operator==(const toml_source&) const = default;
};

/// The value of a setting, without its secrets. None: it is not set.
using setting_value =
    std::variant<std::monostate, bool, std::uint64_t, std::string, std::vector<std::string>, toml_source>;

/// One setting of the server or of a share.
struct setting_record {
    std::string key;
    setting_kind kind = setting_kind::other;
    setting_origin origin = setting_origin::unset;
    setting_value value{};
    unsigned line = 0;                      // in the file; 0: it is not there
    std::vector<unsigned> element_lines{};  // those of the last values of a list
};

/// The settings of one table: those of the server, or of one share.
struct table_record {
    std::string name{};  // the share; empty if the file does not name it
    unsigned line = 0;
    std::vector<setting_record> settings{};

    /// Returns null if there is no such setting.
    [[nodiscard]] const setting_record* find(std::string_view key) const noexcept;
    /// Returns all names.
    [[nodiscard]] std::vector<std::string> keys() const;
};

/// A reason why the file is invalid: "line 3: [[share]]: …".
struct setting_problem {
    unsigned line = 0;
    std::string text{};
};

/// Everything that was read from one configuration.
struct configuration_record {
    std::string path{};  // empty: no file
    table_record server{};
    std::vector<table_record> shares{};
    std::vector<setting_problem> problems{};  // the first `problems_max`

    static constexpr std::size_t problems_max = 200;
};

/// Returns the value as TOML, in one line without control characters; "" if it is not set.
[[nodiscard]] std::string toml_text(const setting_value& value);
[[nodiscard]] std::string toml_string(std::string_view text);

/// Returns the value without its secrets: the password of `user`, and all of a setting whose name
/// says that it is a secret.
[[nodiscard]] setting_value without_secrets(std::string_view key, setting_value value);

}  // namespace sluice::cli
