#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// A reader of Samba's configuration, as smb.conf(5) describes it: sections in brackets, lines
// `name = value`, lines that a backslash continues, remarks after ';' or '#', and the parameters
// `include` and `copy`. The case and the white space of names do not matter.
//
// Thread safety: values; functions from any thread. Bounded: see the limits below.

namespace smb_conf_limits {
inline constexpr std::size_t file_bytes_max = std::size_t{1} << 20;
inline constexpr std::size_t line_bytes_max = 8192;  ///< with its continuations
inline constexpr std::size_t include_depth_max = 8;
inline constexpr std::size_t files_max = 64;
inline constexpr std::size_t sections_max = 1000;
inline constexpr std::size_t parameters_max = 20'000;  ///< of all sections, with the copies
inline constexpr std::size_t problems_max = 100;
}  // namespace smb_conf_limits

/// A line of the file.
struct smb_place {
    std::string file;
    unsigned line = 0;
};

/// A parameter of a section.
struct smb_parameter {
    std::string name;   ///< in the form of canonical_smb_name()
    std::string value;  ///< without white space around it
    smb_place place{};
    std::string shown;  ///< the name as in the file
};

/// A section. The last parameter of a name is in effect.
struct smb_section {
    std::string name;  ///< as in the file, with single spaces
    smb_place place{};
    std::vector<smb_parameter> parameters{};
    bool lacks_restriction = false;  ///< a line that may restrict access could not be read

    /// Returns null if the section does not have it.
    [[nodiscard]] const smb_parameter* find(std::string_view name) const noexcept;
};

/// An error in the file, or a part of it that cannot be read.
struct smb_problem {
    smb_place place{};
    std::string text;
};

struct smb_conf {
    std::vector<smb_section> sections{};  ///< the first is [global]
    std::vector<smb_problem> problems{};
};

/// Returns the content of a file, or the reason why it cannot be read.
using smb_conf_source = std::function<std::expected<std::string, std::string>(const std::string& path)>;

/// Reads a configuration and the files that it includes. `content` is that of the file `path`.
/// Continues after an error, which is in `problems`. Allocates: the result, which the limits bound.
/// Blocks: as `source`.
[[nodiscard]] smb_conf parse_smb_conf(const std::string& path, std::string_view content,
                                      const smb_conf_source& source);

/// The name of a parameter that has several, and whether this one has the opposite meaning.
struct smb_name {
    std::string name;
    bool is_opposite = false;
};

/// Returns the form of a name that the importer knows: "readonly" and true for "Write OK".
[[nodiscard]] smb_name canonical_smb_name(std::string_view shown);

/// Returns the value of a boolean parameter: yes, true, on and 1, or no, false, off and 0.
[[nodiscard]] std::expected<bool, std::string> smb_boolean(std::string_view value);

/// Returns the elements of a list, which commas, semicolons or white space separate. Double quotes
/// keep an element together.
[[nodiscard]] std::vector<std::string> smb_list(std::string_view value);

/// Returns the value with the substitutions that have one value for all clients: `%S` is the share,
/// `%%` a percent sign. Errors: another substitution, as in "%U".
[[nodiscard]] std::expected<std::string, std::string> smb_substituted(std::string_view value,
                                                                      std::string_view share);

}  // namespace sluice::cli
