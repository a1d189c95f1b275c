#include "sluice/cli/serve/serve_options.hpp"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/byte_size.hpp"
#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/serve/table_reader.hpp"
#include "sluice/cli/status/web/web_address.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::cli {

namespace {

void read_size_limit(table_reader& reader, share_options& share) {
    std::string text;
    reader.take("size-limit", text, validate_size_limit);
    if (not text.empty()) share.size_limit = parse_size(text).value_or(0);
}

// A share that refers to other servers has no files, so settings about files have no meaning.
void check_referral(table_reader& reader, const toml::table& table, const share_options& share) {
    if (share.path.empty() and share.referral.empty() and reader.find("referral") == nullptr)
        return reader.refuse(table, "missing setting path or referral");
    const toml::node* const node = reader.find("referral");
    if (node == nullptr) return;
    if (not share.path.empty())
        return reader.refuse(*node,
                             fmt::format("a share with path '{}' cannot have a referral, too; remove one "
                                         "of them",
                                         share.path));
    if (share.referral.empty() or share.referral.size() > referral_targets_max)
        return reader.refuse(*node, fmt::format("invalid value for referral: {} targets; use 1 to {}",
                                                share.referral.size(), referral_targets_max));
    if (share.name.empty()) return reader.refuse(*node, "missing setting name, which a referral needs");
    for (const std::string_view key :
         {"size-limit",     "read-only", "hide-unreadable", "read-only-user",    "write-user",
          "auditor",        "offload",   "short-names",     "previous-versions", "owner",
          "group",          "file-mode", "folder-mode",     "inherit-owner",     "hide",
          "hide-dot-files", "reject",    "recycle",         "overlay",           "journal",
          "code-page",      "time-zone"})
        if (const toml::node* const of_files = table.get(key))
            reader.refuse(*of_files,
                          fmt::format("'{}' does not apply to a share with a referral; remove it", key));
}

// The intent of a list without users is unclear: it could admit all users, or none.
void take_users(table_reader& reader, std::string_view key, std::vector<std::string>& into) {
    reader.take(key, into, validate_user_entry);
    const toml::node* const node = reader.find(key);
    if (node != nullptr and node->is_array() and node->as_array()->empty())
        reader.refuse(
            *node,
            fmt::format("invalid value for {}: the list is empty; name a user, or remove the setting", key));
}

void take_hosts(table_reader& reader, std::vector<std::string>& allowed, std::vector<std::string>& denied) {
    const auto take = [&](std::string_view key, std::vector<std::string>& list) {
        reader.take(key, list, validate_host_rule);
        const toml::node* const node = reader.find(key);
        if (node != nullptr and list.size() > host_rules_max)
            reader.refuse(*node, fmt::format("invalid value for {}: {} rules; use at most {}", key,
                                             list.size(), host_rules_max));
    };
    take("allowed-host", allowed);
    take("denied-host", denied);
}

void read_group(table_reader& reader, std::string_view name, const toml::node& node,
                std::vector<user_group>& into) {
    const auto refuse = [&](const toml::node& where, std::string_view why) {
        reader.refuse(where, fmt::format("invalid group '{}' in [groups]: {}", name, why));
    };
    if (const std::string rule = validate_user_name(std::string(name)); not rule.empty())
        return refuse(node, rule);
    const auto is_same = [&](const user_group& each) { return equal_ignoring_case(each.name, name); };
    if (std::ranges::any_of(into, is_same))
        return refuse(node, "another group has this name; names are compared without case");
    const toml::array* const list = node.as_array();
    if (list == nullptr) return refuse(node, "use a list of users, as in [\"alice\", \"bob\"]");
    if (list->size() > group_members_max)
        return refuse(node, fmt::format("{} users; use at most {}", list->size(), group_members_max));
    user_group group{.name = std::string(name), .members = {}};
    for (const toml::node& each : *list) {
        const std::string member = each.value<std::string>().value_or("");
        if (const std::string rule = validate_user_name(member); not rule.empty())
            return refuse(each, fmt::format("invalid user '{}': {}", member, rule));
        group.members.push_back(member);
    }
    into.push_back(std::move(group));
}

void read_groups(table_reader& reader, std::vector<user_group>& into) {
    const toml::node* const node = reader.find("groups");
    if (node == nullptr) return;
    const toml::table* const groups = node->as_table();
    if (groups == nullptr)
        return reader.refuse(*node, "invalid value for groups: use a table, as in [groups]");
    if (groups->size() > groups_max)
        return reader.refuse(*node, fmt::format("invalid value for groups: {} groups; use at most {}",
                                                groups->size(), groups_max));
    for (const auto& [name, members] : *groups)
        read_group(reader, name.str(), members, into);
}

// Reads the name or the number of an account.
template <class LookUp>
void read_account(table_reader& reader, std::string_view key, std::optional<std::uint32_t>& into,
                  LookUp look_up, std::string (*why_not)(std::uint32_t)) {
    const toml::node* const node = reader.find(key);
    if (node == nullptr) return;
    const auto number = node->value_exact<std::int64_t>();
    const auto text = number ? fmt::format("{}", *number) : node->value_exact<std::string>();
    if (not text)
        return reader.refuse(*node,
                             fmt::format("invalid value for {}: use a name in quotes, or a number", key));
    const auto found = look_up(*text);
    const std::string rule = found ? why_not(*found) : found.error();
    if (not rule.empty())
        return reader.refuse(*node, fmt::format("invalid value '{}' for {}: {}", *text, key, rule));
    into = *found;
}

void read_mode(table_reader& reader, std::string_view key, std::optional<std::uint16_t>& into,
               std::expected<std::uint16_t, std::string> (*parse)(const std::string&)) {
    std::string text;
    reader.take(key, text);
    const toml::node* const node = reader.find(key);
    if (node == nullptr or not node->is_string()) return;
    const auto parsed = parse(text);
    if (not parsed)
        return reader.refuse(*node, fmt::format("invalid value '{}' for {}: {}", text, key, parsed.error()));
    into = *parsed;
}

void read_ownership(table_reader& reader, named_accounts& accounts, vfs::creation_rules& rules) {
    const auto user = [&](const std::string& text) { return accounts.user(text); };
    const auto group = [&](const std::string& text) { return accounts.group(text); };
    read_account(reader, "owner", rules.owner, user, why_not_owner);
    read_account(reader, "group", rules.group, group, why_not_group);
    read_mode(reader, "file-mode", rules.file_bits, parse_file_mode);
    read_mode(reader, "folder-mode", rules.directory_bits, parse_directory_mode);
    reader.take("inherit-owner", rules.inherits_owner);
    if (not rules.inherits_owner) return;
    const toml::node& node = *reader.find("inherit-owner");
    if (rules.owner)
        return reader.refuse(node,
                             "'inherit-owner' does not apply to a share with 'owner'; remove one of them");
    if (const std::string why = why_not_inherit_owner(); not why.empty())
        reader.refuse(node, fmt::format("invalid value for inherit-owner: {}", why));
}

// `own`: those of another setting.
void read_patterns(table_reader& reader, std::string_view key, const std::vector<std::string>& own,
                   vfs::name_patterns& into) {
    std::vector<std::string> texts;
    reader.take(key, texts);
    texts.insert(texts.begin(), own.begin(), own.end());
    auto parsed = vfs::name_patterns::parse(texts);
    const toml::node* const node = reader.find(key);
    if (parsed)
        into = *std::move(parsed);
    else if (node != nullptr)
        reader.refuse(*node, fmt::format("invalid value for {}: {}", key, parsed.error()));
}

[[nodiscard]] std::string validate_bin_name(const std::string& name) {
    if (not vfs::check_name(name)) return "use one name without slashes, as in \".recycle\"";
    return vfs::is_stream_store(name) ? "it is the name of the store for streams; use another one" : "";
}

[[nodiscard]] vfs::recycle_rules read_recycle_table(table_reader& reader) {
    vfs::recycle_rules rules;
    std::string directory;
    reader.take("directory", directory, validate_bin_name);
    if (not directory.empty()) rules.directory = std::move(directory);
    unsigned days = 0;
    reader.take_number("days", days, recycle_days_max);
    rules.age_max = std::chrono::days(days);
    std::string size;
    reader.take("size", size, validate_size_limit);
    if (not size.empty()) rules.bytes_max = parse_size(size).value_or(0);
    read_patterns(reader, "exclude", {}, rules.excluded);
    if (reader.find("versions") != nullptr) {
        rules.keeps_versions = false;
        reader.take("versions", rules.keeps_versions);
    }
    reader.refuse_unknown([](std::string_view) { return false; }, "");
    return rules;
}

// A switch, or a table with the details.
void read_recycle(table_reader& reader, std::vector<setting_problem>& problems,
                  std::optional<vfs::recycle_rules>& into) {
    const toml::node* const node = reader.find("recycle");
    if (node == nullptr) return;
    if (const auto is_on = node->value_exact<bool>()) {
        if (*is_on) into.emplace();
        return;
    }
    const toml::table* const table = node->as_table();
    if (table == nullptr)
        return reader.refuse(*node,
                             "invalid value for recycle: use true, false, or a table, as in { days = 30 }");
    table_record of_details;
    table_reader details(*table, "[[share]]: recycle: ", of_details, problems);
    into = read_recycle_table(details);
    if (reader.problem.empty()) reader.problem = std::move(details.problem);
}

void read_file_rules(table_reader& reader, std::vector<setting_problem>& problems, named_accounts& accounts,
                     share_file_rules& rules) {
    read_ownership(reader, accounts, rules.created);
    bool hides_dot_files = false;
    reader.take("hide-dot-files", hides_dot_files);
    const std::vector<std::string> dot_files(hides_dot_files ? 1 : 0, ".*");
    read_patterns(reader, "hide", dot_files, rules.hidden_names);
    read_patterns(reader, "reject", {}, rules.rejected_names);
    read_recycle(reader, problems, rules.recycle);
}

[[nodiscard]] std::string read_share(const toml::table& table, named_accounts& accounts, share_options& share,
                                     table_record& record, std::vector<setting_problem>& problems) {
    table_reader reader(table, "[[share]]: ", record, problems);
    reader.take("name", share.name);
    reader.take("path", share.path);
    reader.take("referral", share.referral, validate_referral);
    reader.take("comment", share.comment);
    read_size_limit(reader, share);
    reader.take("read-only", share.read_only);
    reader.take("encrypt", share.encrypt);
    reader.take("hidden", share.hidden);
    reader.take("hide-unreadable", share.hide_unreadable);
    take_users(reader, "user", share.users);
    take_users(reader, "read-only-user", share.read_only_users);
    take_users(reader, "write-user", share.write_users);
    take_users(reader, "auditor", share.auditors);
    reader.take("guest", share.guest, validate_guest_access);
    take_hosts(reader, share.allowed_hosts, share.denied_hosts);
    reader.take("offload", share.offloads);
    reader.take_switch("short-names", share.short_names);
    reader.take("previous-versions", share.previous_versions, validate_previous_versions_of_share);
    reader.take_switch("continuous-availability", share.continuous_availability);
    read_file_rules(reader, problems, accounts, share.files);
    reader.take("overlay", share.image.overlay);
    reader.take("journal", share.image.journal);
    reader.take("code-page", share.image.code_page);
    reader.take("time-zone", share.image.time_zone);
    record.name = share.name;
    reader.refuse_unknown([](std::string_view name) { return all_settings().server.find(name) != nullptr; },
                          "before the first [[share]]");
    check_referral(reader, table, share);
    if (const auto how = mount_options_of(share.image); not how) reader.refuse(table, how.error());
    return reader.problem;
}

// The order is a preference, so a list on the command line replaces that of the file.
void read_signing_algorithms(table_reader& reader, serve_options& options) {
    constexpr std::string_view key = "signing-algorithms";
    std::vector<std::string> texts;
    reader.take(key, texts, validate_signing_algorithms);
    const toml::node* const node = reader.find(key);
    const auto checked = signing_algorithms_of(texts);
    if (node != nullptr and not checked)
        reader.refuse(*node, fmt::format("invalid value for {}: {}", key, checked.error()));
    const bool was_given = is_given(options.signing_algorithms);
    if (not was_given) options.signing_algorithms = std::move(texts);
    reader.record(key, setting_kind::list, was_given, options.signing_algorithms);
}

constexpr const char* not_a_table = "invalid share: write each one as a table [[share]]";

void read_shares(table_reader& reader, const toml::node& shares, serve_options& options,
                 configuration_record& record) {
    const toml::array* const list = shares.as_array();
    if (list == nullptr) return reader.refuse(shares, not_a_table);
    for (const toml::node& node : *list) {
        const toml::table* const one = node.as_table();
        share_options share;
        table_record& into = record.shares.emplace_back();
        if (one == nullptr)
            reader.refuse(node, not_a_table);
        else if (std::string problem = read_share(*one, *options.accounts, share, into, record.problems);
                 reader.problem.empty())
            reader.problem = std::move(problem);
        options.shares.push_back(std::move(share));
    }
}

// First: a file of a later version may have settings and values that this program does not know.
void check_version(table_reader& reader) {
    constexpr std::int64_t supported = 1;
    const toml::node* const node = reader.find("version");
    if (node == nullptr) return;
    const auto version = node->value<std::int64_t>();
    if (not node->is_integer() or *version < 1)
        return reader.refuse(*node, "invalid value for version: use 1");
    if (*version > supported)
        reader.refuse(*node, fmt::format("unsupported version {}; this program supports version {}; use a "
                                         "newer sluice",
                                         *version, supported));
}

[[nodiscard]] std::string read_table(const toml::table& table, serve_options& options,
                                     configuration_record& record) {
    table_reader reader(table, "", record.server, record.problems);
    check_version(reader);
    if (not reader.problem.empty()) return reader.problem;
    reader.take("name", options.name, validate_server_name);
    reader.take("listen", options.listen, validate_listener);
    reader.take("advertise", options.advertise, validate_advertised_addresses);
    reader.take_number("port", options.port, port_max);
    reader.take("user", options.users, validate_user);
    reader.take("users-file", options.users_file);
    reader.take("shared-locks", options.shared_locks);
    reader.take("status-socket", options.status_socket);
    reader.take("metrics", options.metrics, validate_metrics);
    reader.take("web", options.web, validate_web);
    reader.take("web-token-file", options.web_token_file);
    reader.take("read-only", options.read_only);
    take_users(reader, "read-only-user", options.read_only_users);
    reader.take("hide-unreadable", options.hide_unreadable);
    take_users(reader, "auditor", options.auditors);
    reader.take("administrator", options.administrators, validate_user_entry);
    reader.take("homes", options.homes, validate_homes);
    read_groups(reader, options.groups);
    take_hosts(reader, options.allowed_hosts, options.denied_hosts);
    reader.take("offload", options.offload);
    reader.take_switch("short-names", options.short_names);
    reader.take("previous-versions", options.previous_versions, validate_previous_versions);
    reader.take_switch("directory-leases", options.directory_leases);
    reader.take_switch("compression", options.compression);
    reader.take_switch("continuous-availability", options.continuous_availability);
    reader.take("state-directory", options.state_directory);
    reader.take("encrypt", options.encrypt);
    reader.take("no-signing", options.no_signing);
    read_signing_algorithms(reader, options);
    reader.take("guest", options.guest);
    reader.take("guest-write", options.guest_write);
    reader.take("impersonate", options.impersonate);
    reader.take("quotas", options.quotas);
    reader.take("confine-to", options.confine_to);
    bool no_confinement = not options.confines;
    reader.take("no-confinement", no_confinement);
    options.confines = not no_confinement;
    reader.take_unless_off("discovery", options.discovery);
    reader.take_number("session-lifetime", options.session_lifetime, session_lifetime_minutes_max);
    reader.take_number("loops", options.loops, loops_max);
    if (const toml::node* const shares = reader.find(table_reader::shares_key))
        read_shares(reader, *shares, options, record);
    reader.refuse_unknown([](std::string_view name) { return all_settings().share.find(name) != nullptr; },
                          "into a table [[share]]");
    return reader.problem;
}

struct file_closer {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};

// The file may be a pipe.
[[nodiscard]] result<std::string> content_of(const std::string& path) {
    const std::unique_ptr<std::FILE, file_closer> file(std::fopen(path.c_str(), "re"));
    if (file == nullptr) return failure(error::with_path(errno, "open", path));
    std::string text;
    std::array<char, 65'536> piece;
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get())) {
        text.append(piece.data(), got);
        if (text.size() > configuration_bytes_max)
            return failure(error::with_path(EFBIG, "read a configuration of more than 4 MiB", path));
    }
    if (std::ferror(file.get()) != 0) return failure(error::with_path(errno, "read", path));
    return text;
}

}  // namespace

std::string referral_text(const share_options& share) {
    std::string text;
    for (std::string target : share.referral) {
        std::ranges::replace(target, '\\', '/');
        text += (text.empty() ? "referral to " : ", ") + target;
    }
    return text;
}

share_options parse_share(const std::string& text) {
    share_options share;
    const std::size_t equals = text.find('=');
    // A path may contain '='; a name before one has no slash.
    const bool is_named = equals != std::string::npos and equals != 0 and text.find('/') > equals;
    if (is_named) share.name = text.substr(0, equals);
    share.path = is_named ? text.substr(equals + 1) : text;
    return share;
}

const known_settings& all_settings() {
    static const known_settings all = [] {
        serve_options nothing;
        configuration_record record;
        share_options share;
        known_settings known;
        (void)read_table({}, nothing, record);
        (void)read_share({}, *nothing.accounts, share, known.share, record.problems);
        known.server = std::move(record.server);
        return known;
    }();
    return all;
}

std::expected<void, std::string> read_configuration(const std::string& path, serve_options& options) {
    const auto content = content_of(path);
    if (content) return read_configuration_text(*content, path, options);
    const auto record = std::make_shared<configuration_record>();
    record->path = path;
    record->problems.push_back({0, content.error().message()});
    options.record = record;
    return std::unexpected(content.error().message());
}

std::expected<void, std::string> read_configuration_text(std::string_view content, const std::string& path,
                                                         serve_options& options) {
    const auto record = std::make_shared<configuration_record>();
    record->path = path;
    options.record = record;
    try {
        const toml::table table = toml::parse(content, path);
        const std::string problem = read_table(table, options, *record);
        if (problem.empty()) return {};
        if (record->problems.empty()) record->problems.push_back({0, problem});
        return std::unexpected(path + ": " + problem);
    } catch (const toml::parse_error& wrong) {
        const unsigned line = wrong.source().begin.line;
        std::string text = fmt::format("line {}: {}", line, toml_problem(wrong.description()));
        record->problems.push_back({line, text});
        return std::unexpected(fmt::format("{}: {}", path, text));
    }
}

}  // namespace sluice::cli
