#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/help_text.hpp"
#include "sluice/fsmutex/entity.hpp"
#include "sluice/fsmutex/process/lock_file.hpp"

namespace sluice::cli {

/// The validated command line of `sluice lock`.
struct lock_options {
    enum class request : std::uint8_t { help, version, list, run, lock_descriptor, unlock_descriptor };
    request what = request::run;

    std::string file;     ///< for list and run
    int descriptor = -1;  ///< for lock_descriptor and unlock_descriptor
    std::vector<std::string> command;

    std::vector<std::string> exclusive;  ///< names; without any name, the whole file is locked
    std::vector<std::string> shared;
    fsmutex::lock_mode whole_file = fsmutex::lock_mode::exclusive;
    std::string algorithm = "best";
    fsmutex::file_access access;  ///< for a file that is created

    std::optional<double> timeout_s;  ///< 0: do not wait; std::nullopt: wait until granted
    int conflict_status = 1;          ///< 0 to 255

    bool closes = false;
    bool releases_on_exit = false;
    bool forks = true;
    bool is_verbose = false;

    [[nodiscard]] bool has_names() const noexcept { return not exclusive.empty() or not shared.empty(); }
    [[nodiscard]] bool wants_shared() const noexcept {
        return not shared.empty() or (not has_names() and whole_file == fsmutex::lock_mode::shared);
    }
};

/// Parses the arguments of `sluice lock`. Options end at the first operand, as with flock(1), so
/// the options of the command need no `--`. `shell` runs the command of -c; empty: /bin/sh.
/// Errors: a message that names value, rule and remedy. Allocates: yes. Thread safety: one thread
/// of the program at a time, because getopt_long(3) has state.
[[nodiscard]] std::expected<lock_options, std::string> parse_lock_options(
    const std::vector<std::string>& words, std::string_view shell);

/// Returns the text of --help.
[[nodiscard]] std::string lock_help();

/// Returns the options and operands, for the completion of command lines.
[[nodiscard]] std::vector<help_option> lock_help_options();

}  // namespace sluice::cli
