#include "sluice/cli/lock/options.hpp"

#include <fmt/core.h>
#include <getopt.h>
#include <grp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "sluice/cli/closest_word.hpp"
#include "sluice/cli/help_text.hpp"

namespace sluice::cli {
namespace {

using fsmutex::lock_mode;
using problem = std::unexpected<std::string>;

constexpr double timeout_s_max = 1e9;
constexpr std::array algorithms{"best", "memory_map", "atomic_append", "byte_ranges", "lock_files", "flock"};

// Keys of options without a short name.
enum : int {
    exclusive_name = 256,
    shared_name,
    algorithm_key,
    list_key,
    mode_key,
    group_key,
    release_key,
    verbose_key
};

struct option_text {
    int key;
    std::array<const char*, 3> names;  // the first is the one that the help shows
    const char* value;                 // nullptr: none
    const char* what;
};

constexpr std::array option_texts{
    option_text{'h', {"help"}, nullptr, "print this help and exit"},
    option_text{'V', {"version"}, nullptr, "print the version and exit"},
    option_text{'x', {}, nullptr, "lock the whole file exclusively (also -e); the default"},
    option_text{'s', {}, nullptr, "lock the whole file shared with other readers"},
    option_text{exclusive_name, {"exclusive"}, "NAME", "lock NAME exclusively (repeatable)"},
    option_text{shared_name, {"shared"}, "NAME", "lock NAME shared with other readers (repeatable)"},
    option_text{'u', {"unlock"}, nullptr, "release the lock of a descriptor"},
    option_text{'n', {"nonblock", "nb"}, nullptr, "fail instead of waiting"},
    option_text{'w', {"timeout", "wait"}, "SECONDS", "maximum wait; 0 does not wait [0-1e9]"},
    option_text{'E', {"conflict-exit-code"}, "NUMBER", "exit status if not granted [0-255] [default: 1]"},
    option_text{'o', {"close"}, nullptr, "do not pass the lock to COMMAND; release it when COMMAND exits"},
    option_text{release_key,
                {"release-on-exit"},
                nullptr,
                "release the lock when COMMAND exits, although processes that it started still run"},
    option_text{'F', {"no-fork"}, nullptr, "replace this process by COMMAND, which keeps the lock"},
    option_text{'c', {"command"}, "COMMAND", "after LOCKFILE: run COMMAND by the shell"},
    option_text{algorithm_key,
                {"algorithm"},
                "NAME",
                "best, memory_map, atomic_append, byte_ranges, lock_files, flock; must be the same for all "
                "users of LOCKFILE [default: best]"},
    option_text{
        mode_key, {"mode"}, "OCTAL", "permissions of LOCKFILE if it is created [default: as its directory]"},
    option_text{group_key, {"group"}, "GROUP", "group of LOCKFILE if it is created; may read and write it"},
    option_text{list_key, {"list"}, nullptr, "list lock holders and waiters, and exit"},
    option_text{
        verbose_key, {"verbose"}, nullptr, "report how long the lock took, or why it was not granted"},
};

// The options as getopt_long(3) returned them, before their combination is checked.
struct given {
    lock_options options;
    bool has_mode = false;  // -x, -s, -e
    bool unlocks = false;
    bool lists = false;
    bool is_nonblocking = false;
};

[[nodiscard]] std::expected<double, std::string> seconds_of(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool is_number = not text.empty() and end == text.c_str() + text.size();
    if (not is_number or not(value >= 0) or value > timeout_s_max)
        return problem(fmt::format("invalid value '{}' for --timeout: use 0 to 1e9 seconds", text));
    return value;
}

[[nodiscard]] std::optional<int> whole_number(std::string_view text) noexcept {
    int value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() or parsed.ec != std::errc() or parsed.ptr != text.data() + text.size())
        return std::nullopt;
    return value;
}

[[nodiscard]] std::optional<unsigned> mode_of(std::string_view text) noexcept {
    unsigned value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 8);
    const bool is_number =
        not text.empty() and parsed.ec == std::errc() and parsed.ptr == text.data() + text.size();
    if (not is_number or value > 0777U or (value & 0600U) != 0600U) return std::nullopt;
    return value;
}

[[nodiscard]] std::optional<gid_t> group_of(const std::string& text) noexcept {
    if (const struct group* const found = ::getgrnam(text.c_str())) return found->gr_gid;
    const auto number = whole_number(text);
    if (not number or *number < 0) return std::nullopt;
    return static_cast<gid_t>(*number);
}

[[nodiscard]] std::optional<std::string> take_value(given& all, int key, const std::string& value) {
    lock_options& options = all.options;
    if (key == exclusive_name) {
        options.exclusive.push_back(value);
    } else if (key == shared_name) {
        options.shared.push_back(value);
    } else if (key == 'w') {
        const auto seconds = seconds_of(value);
        if (not seconds) return seconds.error();
        options.timeout_s = *seconds;
    } else if (key == 'E') {
        const auto status = whole_number(value);
        if (not status or *status < 0 or *status > 255)
            return fmt::format("invalid value '{}' for --conflict-exit-code: use 0 to 255", value);
        options.conflict_status = *status;
    } else if (key == mode_key) {
        options.access.mode = mode_of(value);
        if (not options.access.mode)
            return fmt::format(
                "invalid value '{}' for --mode: use an octal number from 600 to 777 with 600 for the owner",
                value);
    } else if (key == group_key) {
        options.access.group = group_of(value);
        if (not options.access.group)
            return fmt::format("invalid value '{}' for --group: use the name or the number of a group",
                               value);
    } else if (key == algorithm_key) {
        if (std::ranges::find(algorithms, value) == algorithms.end())
            return fmt::format(
                "invalid value '{}' for --algorithm: use best, memory_map, atomic_append, byte_ranges, "
                "lock_files, or "
                "flock",
                value);
        options.algorithm = value;
    }
    return std::nullopt;
}

void take_flag(given& all, int key) noexcept {
    lock_options& options = all.options;
    switch (key) {
        case 'h':
            options.what = lock_options::request::help;
            break;
        case 'V':
            options.what = lock_options::request::version;
            break;
        case 'e':
        case 'x':
        case 's':
            // The last one counts, as with flock(1).
            options.whole_file = key == 's' ? lock_mode::shared : lock_mode::exclusive;
            all.has_mode = true;
            all.unlocks = false;
            break;
        case 'u':
            all.unlocks = true;
            break;
        case 'n':
            all.is_nonblocking = true;
            break;
        case 'o':
            options.closes = true;
            break;
        case 'F':
            options.forks = false;
            break;
        case release_key:
            options.releases_on_exit = true;
            break;
        case list_key:
            all.lists = true;
            break;
        case verbose_key:
            options.is_verbose = true;
            break;
        default:
            break;
    }
}

[[nodiscard]] std::vector<option> long_options() {
    std::vector<option> made;
    for (const option_text& each : option_texts)
        if (each.key != 'c')  // which stands after the operand
            for (const char* const name : each.names)
                if (name != nullptr)
                    made.push_back(
                        {name, each.value != nullptr ? required_argument : no_argument, nullptr, each.key});
    made.push_back({});
    return made;
}

[[nodiscard]] std::vector<std::string> long_names() {
    std::vector<std::string> names;
    for (const option_text& each : option_texts)
        for (const char* const name : each.names)
            if (name != nullptr) names.push_back(std::string("--") + name);
    return names;
}

// Returns the index of the first operand.
[[nodiscard]] std::expected<std::size_t, std::string> take_options(given& all,
                                                                   const std::vector<std::string>& words) {
    std::string program = "sluice lock";
    std::vector<char*> pointers{program.data()};
    for (const std::string& word : words)
        pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const auto longs = long_options();
    optind = 0;  // makes glibc start again
    for (;;) {
        // +: stops at the first operand. Colon: errors are reported here, not by getopt_long(3).
        const int key = ::getopt_long(static_cast<int>(pointers.size() - 1), pointers.data(),
                                      "+:hVexsunw:E:oF", longs.data(), nullptr);
        if (key == -1) return static_cast<std::size_t>(optind - 1);
        const std::string word = optind > 0 ? pointers[static_cast<std::size_t>(optind - 1)] : "";
        if (key == '?')
            return problem(optopt > 0 and optopt < 256
                               ? fmt::format("unknown option '-{}'", char(optopt))
                               : fmt::format("unknown option '{}'{}", word,
                                             suggestion_for(word.substr(0, word.find('=')), long_names())));
        if (key == ':') return problem(fmt::format("missing value for {}", word));
        if (optarg == nullptr)
            take_flag(all, key);
        else if (auto rule = take_value(all, key, optarg))
            return problem(*std::move(rule));
    }
}

[[nodiscard]] std::optional<std::string> validate(const given& all) {
    const lock_options& options = all.options;
    if (options.has_names() and (all.has_mode or all.unlocks))
        return "-x, -s, and -u lock the whole file; use them without --exclusive NAME and --shared NAME";
    if (not options.forks and (options.closes or options.releases_on_exit))
        return fmt::format(
            "--no-fork and {} exclude each other, because without a second process only COMMAND can hold the "
            "lock",
            options.closes ? "--close" : "--release-on-exit");
    if (options.algorithm == "flock" and options.has_names())
        return "--algorithm flock locks whole files; remove the names, or use another algorithm";
    if (options.algorithm == "lock_files" and options.wants_shared())
        return "--algorithm lock_files has only exclusive locks; use another algorithm for a shared lock, or "
               "lock exclusively";
    return std::nullopt;
}

[[nodiscard]] std::optional<std::string> take_command(given& all, const std::vector<std::string>& rest,
                                                      std::string_view shell) {
    lock_options& options = all.options;
    const bool has_separator = rest.front() == "--";
    if (options.has_names() and not has_separator)
        return fmt::format(
            "missing '--' between LOCKFILE '{}' and COMMAND, which --exclusive NAME and --shared NAME "
            "require; for "
            "the options of flock(1) without a name, use -x and -s",
            options.file);
    if (has_separator) {
        options.command.assign(rest.begin() + 1, rest.end());
        if (options.command.empty()) return "missing argument COMMAND after '--'";
    } else if (rest.front() == "-c" or rest.front() == "--command") {
        if (rest.size() != 2) return fmt::format("{} requires one argument; quote the command", rest.front());
        options.command = {std::string(shell.empty() ? "/bin/sh" : shell), "-c", rest[1]};
    } else {
        options.command = rest;
    }
    if (all.unlocks)
        return fmt::format(
            "-u releases the lock of a descriptor; use its number instead of '{}' and a command",
            options.file);
    return std::nullopt;
}

[[nodiscard]] std::optional<std::string> take_descriptor(given& all) {
    lock_options& options = all.options;
    const auto number = whole_number(options.file);
    if (not number or *number < 0)
        return fmt::format(
            "missing argument COMMAND; to lock a descriptor instead, use its number instead of '{}'",
            options.file);
    if (options.has_names())
        return fmt::format("descriptor {}: names require a LOCKFILE and a COMMAND", *number);
    if (options.algorithm != "best" and options.algorithm != "flock")
        return fmt::format(
            "descriptor {}: --algorithm {} requires a LOCKFILE and a COMMAND, because only flock(2) locks "
            "descriptors",
            *number, options.algorithm);
    options.descriptor = *number;
    options.what =
        all.unlocks ? lock_options::request::unlock_descriptor : lock_options::request::lock_descriptor;
    return std::nullopt;
}

[[nodiscard]] std::optional<std::string> take_operands(given& all, const std::vector<std::string>& operands,
                                                       std::string_view shell) {
    if (operands.empty()) return "missing argument LOCKFILE";
    all.options.file = operands.front();
    if (all.lists) {
        all.options.what = lock_options::request::list;
        if (operands.size() == 1) return std::nullopt;
        return "--list and COMMAND exclude each other";
    }
    if (operands.size() == 1) return take_descriptor(all);
    return take_command(all, {operands.begin() + 1, operands.end()}, shell);
}

[[nodiscard]] std::string shown_names(const option_text& each) {
    std::string names = each.key < 256 ? fmt::format("-{}", char(each.key)) : "";
    if (each.names.front() != nullptr)
        names += fmt::format("{}--{}", names.empty() ? "" : ", ", each.names[0]);
    return names;
}

[[nodiscard]] std::string shown(const option_text& each) {
    const std::string names = shown_names(each);
    return each.value != nullptr ? fmt::format("{} {}", names, each.value) : names;
}

}  // namespace

std::expected<lock_options, std::string> parse_lock_options(const std::vector<std::string>& words,
                                                            std::string_view shell) {
    given all;
    const auto first = take_options(all, words);
    if (not first) return problem(first.error());
    using enum lock_options::request;
    if (all.options.what == help or all.options.what == version) return all.options;
    if (all.is_nonblocking) all.options.timeout_s = 0;
    if (auto rule = validate(all)) return problem(*std::move(rule));
    const std::vector<std::string> operands(words.begin() + static_cast<std::ptrdiff_t>(*first), words.end());
    if (auto rule = take_operands(all, operands, shell)) return problem(*std::move(rule));
    return all.options;
}

std::string lock_help() {
    std::string text =
        "Usage: sluice lock [OPTIONS] LOCKFILE [--] COMMAND [ARGUMENT...]\n"
        "       sluice lock [OPTIONS] LOCKFILE -c COMMAND\n"
        "       sluice lock [OPTIONS] DESCRIPTOR\n"
        "       sluice lock --list [OPTIONS] LOCKFILE\n"
        "\n"
        "Run a command while holding a lock, or lock an open descriptor, as flock(1) does.\n"
        "Without --exclusive and --shared, the whole LOCKFILE is locked exclusively.\n"
        "\n"
        "Options:\n";
    for (const option_text& each : option_texts)
        append_help_row(text, shown(each), each.what);
    text +=
        "\nExamples:\n"
        "  sluice lock --timeout 0 --exclusive index-a jobs.lock -- ./rebuild\n"
        "  sluice lock --shared index-a jobs.lock -- ./report\n"
        "  sluice lock --list jobs.lock\n";
    text +=
        "\nExit status: that of COMMAND, or 128 and the signal that ended it; 1 not granted in time (-E);\n"
        "64 usage, 65 the descriptor or file cannot be locked, 66 LOCKFILE cannot be opened,\n"
        "69 COMMAND cannot be run, 71 system error, 73 LOCKFILE cannot be created.\n";
    return text;
}

std::vector<help_option> lock_help_options() {
    std::vector<help_option> all;
    for (const option_text& each : option_texts) {
        help_option& option = all.emplace_back();
        option.names = shown_names(each);
        if (each.value != nullptr) option.value = each.value;
        option.what = each.what;
        if (each.key == algorithm_key) option.choices.assign(algorithms.begin(), algorithms.end());
    }
    return all;
}

}  // namespace sluice::cli
