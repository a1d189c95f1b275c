#include "sluice/cli/serve_options.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

namespace sluice::cli {

namespace {

// Reads settings from a table, and records the first error. An unknown key is an error: a
// misspelled setting must not be ignored silently.
class table_reader {
public:
    table_reader(const toml::table& table, std::string_view where) : table_(table), where_(where) {}

    template <class T>
    void take(std::string_view key, T& into) {
        const toml::node* const node = find(key);
        if (node == nullptr) return;
        const auto value = node->value<T>();
        if (not value)
            refuse(*node, fmt::format("'{}' has a value of the wrong type", key));
        else if (into == T{})  // otherwise the command line has set it
            into = *value;
    }
    void take(std::string_view key, std::vector<std::string>& into) {
        const toml::node* const node = find(key);
        if (node == nullptr) return;
        const toml::array* const list = node->as_array();
        if (list == nullptr) return refuse(*node, fmt::format("'{}' must be a list of strings", key));
        for (const toml::node& one : *list) {
            const auto text = one.value<std::string>();
            if (not text) return refuse(one, fmt::format("'{}' must be a list of strings", key));
            into.push_back(*text);
        }
    }
    [[nodiscard]] const toml::node* find(std::string_view key) {
        known_.emplace_back(key);
        return table_.get(key);
    }
    void refuse(const toml::node& node, std::string_view why) {
        if (problem.empty()) problem = fmt::format("line {}: {}: {}", node.source().begin.line, where_, why);
    }
    void refuse_unknown() {
        for (const auto& [key, node] : table_)
            if (std::ranges::find(known_, key.str()) == known_.end())
                refuse(node, fmt::format("unknown setting '{}'", key.str()));
    }

    std::string problem;

private:
    const toml::table& table_;
    std::string_view where_;
    std::vector<std::string> known_;
};

[[nodiscard]] std::string read_share(const toml::table& table, share_options& share) {
    table_reader reader(table, "[[share]]");
    reader.take("name", share.name);
    reader.take("path", share.path);
    reader.take("comment", share.comment);
    reader.take("read-only", share.read_only);
    reader.take("encrypt", share.encrypt);
    reader.take("hidden", share.hidden);
    reader.take("hide-unreadable", share.hide_unreadable);
    reader.take("user", share.users);
    reader.take("read-only-user", share.read_only_users);
    reader.take("auditor", share.auditors);
    reader.take("offload", share.offloads);
    reader.take("overlay", share.image.overlay);
    reader.take("journal", share.image.journal);
    reader.take("code-page", share.image.code_page);
    reader.take("time-zone", share.image.time_zone);
    reader.refuse_unknown();
    if (share.path.empty()) reader.refuse(table, "a share needs a 'path'");
    if (const auto how = mount_options_of(share.image); not how) reader.refuse(table, how.error());
    return reader.problem;
}

// The order is a preference, so a list on the command line replaces that of the file.
void read_signing_algorithms(table_reader& reader, serve_options& options) {
    constexpr std::string_view key = "signing-algorithms";
    const toml::node* const node = reader.find(key);
    if (node == nullptr) return;
    std::vector<std::string> texts;
    reader.take(key, texts);
    if (const auto checked = signing_algorithms_of(texts); not checked) reader.refuse(*node, checked.error());
    if (options.signing_algorithms.empty()) options.signing_algorithms = std::move(texts);
}

[[nodiscard]] std::string read_table(const toml::table& table, serve_options& options) {
    table_reader reader(table, "the server");
    reader.take("name", options.name);
    reader.take("listen", options.listen);
    reader.take("advertise", options.advertise);
    std::int64_t port = options.port;
    reader.take("port", port);
    reader.take("user", options.users);
    reader.take("users-file", options.users_file);
    reader.take("shared-locks", options.shared_locks);
    reader.take("status-socket", options.status_socket);
    reader.take("metrics", options.metrics);
    reader.take("read-only", options.read_only);
    reader.take("read-only-user", options.read_only_users);
    reader.take("hide-unreadable", options.hide_unreadable);
    reader.take("auditor", options.auditors);
    reader.take("offload", options.offload);
    reader.take("encrypt", options.encrypt);
    reader.take("no-signing", options.no_signing);
    read_signing_algorithms(reader, options);
    reader.take("guest", options.guest);
    reader.take("impersonate", options.impersonate);
    reader.take("confine-to", options.confine_to);
    bool no_confinement = not options.confines;
    reader.take("no-confinement", no_confinement);
    options.confines = not no_confinement;
    std::int64_t session_lifetime = options.session_lifetime;
    reader.take("session-lifetime", session_lifetime);
    std::int64_t loops = options.loops;
    reader.take("loops", loops);
    if (const toml::node* const shares = reader.find("share")) {
        const toml::array* const list = shares->as_array();
        if (list == nullptr) reader.refuse(*shares, "write shares as [[share]]");
        for (std::size_t i = 0; list != nullptr and i != list->size(); ++i) {
            const toml::table* const one = list->get(i)->as_table();
            share_options share;
            const std::string problem =
                one == nullptr ? "write shares as [[share]]" : read_share(*one, share);
            if (not problem.empty()) return problem;
            options.shares.push_back(std::move(share));
        }
    }
    reader.refuse_unknown();
    if (port < 0 or port > 65535) return fmt::format("invalid port {}: use 1 to 65535", port);
    options.port = static_cast<std::uint16_t>(port);
    if (session_lifetime < 0 or session_lifetime > session_lifetime_minutes_max)
        return fmt::format("invalid session-lifetime {}: use 0 to {} minutes", session_lifetime,
                           session_lifetime_minutes_max);
    options.session_lifetime = static_cast<unsigned>(session_lifetime);
    if (loops < 0 or loops > loops_max) return fmt::format("invalid loops {}: use 0 to {}", loops, loops_max);
    options.loops = static_cast<unsigned>(loops);
    return reader.problem;
}

}  // namespace

share_options parse_share(const std::string& text) {
    share_options share;
    const std::size_t equals = text.find('=');
    // A path may contain '='; a name before one has no slash.
    const bool is_named = equals != std::string::npos and equals != 0 and text.find('/') > equals;
    if (is_named) share.name = text.substr(0, equals);
    share.path = is_named ? text.substr(equals + 1) : text;
    return share;
}

std::expected<std::vector<smb::wire::signing_algorithm>, std::string> signing_algorithms_of(
    const std::vector<std::string>& texts) {
    using enum smb::wire::signing_algorithm;
    constexpr std::array<std::pair<std::string_view, smb::wire::signing_algorithm>, 3> known{
        {{"aes-gmac", aes_gmac}, {"aes-cmac", aes_cmac}, {"hmac-sha256", hmac_sha256}}};
    const std::string all = fmt::format("{}", fmt::join(texts, ","));
    std::vector<smb::wire::signing_algorithm> named;
    for (const auto part : std::views::split(std::string_view(all), ',')) {
        const std::string_view name(part);
        const auto found = std::ranges::find(known, name, [](const auto& one) { return one.first; });
        if (found == known.end())
            return std::unexpected(
                fmt::format("invalid signing algorithm '{}': use a list of aes-gmac, aes-cmac, and "
                            "hmac-sha256, as in 'aes-gmac,aes-cmac'",
                            name));
        named.push_back(found->second);
    }
    if (named.empty())
        return std::unexpected(
            std::string("empty list of signing algorithms: name at least one of aes-gmac, aes-cmac, and "
                        "hmac-sha256, or omit the option"));
    return named;
}

std::expected<void, std::string> read_configuration(const std::string& path, serve_options& options) {
    try {
        const toml::table table = toml::parse_file(path);
        const std::string problem = read_table(table, options);
        if (not problem.empty()) return std::unexpected(path + ": " + problem);
        return {};
    } catch (const toml::parse_error& wrong) {
        return std::unexpected(
            fmt::format("{}: line {}: {}", path, wrong.source().begin.line, wrong.description()));
    }
}

}  // namespace sluice::cli
