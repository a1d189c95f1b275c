#include "sluice/cli/smb/remote.hpp"
#include "sluice/cli/command_line.hpp"
#include "sluice/io/best_available.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/client_settings/password_command.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/password.hpp"
#include "sluice/io/name/name_resolution.hpp"
#include "sluice/smb/client/dial.hpp"

namespace sluice::cli {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::dialect;

namespace {

[[nodiscard]] dialect dialect_of(const std::string& name) {
    if (name == "2.1") return dialect::smb_2_1;
    if (name == "3.0") return dialect::smb_3_0;
    if (name == "3.0.2") return dialect::smb_3_0_2;
    return dialect::smb_3_1_1;
}

// Returns the text of an invalid URL, which may contain a password with any characters.
[[nodiscard]] std::string without_password(std::string url) {
    const std::size_t scheme = url.find("//");
    const std::size_t user = scheme == url.npos ? 0 : scheme + 2;
    const std::size_t at = url.rfind('@');
    const std::size_t colon = url.find(':', user);
    if (at != url.npos and colon < at) url.replace(colon + 1, at - colon - 1, "***");
    return url;
}

// Also closes a session that could not be set up.
io::task<void> log_off_and_close(std::span<const std::unique_ptr<connection>> all,
                                 session* logged_on) noexcept {
    if (logged_on != nullptr and not logged_on->first().is_broken()) {
        io::task<void> leaving = logged_on->log_off();
        co_await std::move(leaving);
    }
    for (const auto& each : all) {
        io::task<void> close_task = each->close();
        co_await std::move(close_task);
    }
}

}  // namespace

void add_remote_url(command_syntax command, std::string& url) {
    command.add_option("URL", url, remote_url_form).required();
}

void add_remote_options(command_syntax command, remote_options& options) {
    command
        .add_option("--password-file", options.password_file,
                    "read the password from the first line of FILE [default: $SLUICE_PASSWORD, client.toml, "
                    "or prompt]")
        .value_name("FILE")
        .group("Access");
    command.add_flag("--guest", options.is_guest, "log on anonymously; requires --no-signing")
        .group("Access");
    command.add_flag("--encrypt", options.encrypts, "require encryption [default: if the server requires it]")
        .group("Protection");
    command.add_flag("--no-signing", options.is_unsigned, "do not require signing").group("Protection");
    command
        .add_option("--channels", options.channels,
                    "number of connections for reads and writes (SMB 3.0 and later)")
        .between(1U, 32U)
        .shows_default()
        .group("Network");
    command
        .add_flag("--compress", options.compresses,
                  "request compression of data, if the server supports it (SMB 3.1.1)")
        .group("Network");
    command
        .add_option("--timeout", options.timeout_seconds,
                    "seconds in which the server must accept the connection, and then the logon")
        .between(1U, 3600U)
        .value_name("SECONDS")
        .shows_default()
        .group("Network");
    command
        .add_option("--dialect", options.dialect_max, "highest SMB dialect to offer: 2.1, 3.0, 3.0.2, 3.1.1")
        .one_of({"2.1", "3.0", "3.0.2", "3.1.1"})
        .value_name("VERSION")
        .shows_default()
        .group("Network");
}

std::string resolution_problem(const std::string& host, const error& why) {
    // The resolver's own words: errno has none for them.
    std::string reason = std::generic_category().message(why.code());
    if (why == std::errc::no_such_file_or_directory)
        reason = "no such host; check the name, or use the address";
    if (why == std::errc::resource_unavailable_try_again)
        reason = "the name server does not answer; check the network, or use the address";
    return fmt::format("look up '{}': {}", host, reason);
}

std::string connection_problem(const client_error& why, unsigned timeout_seconds) {
    const std::string text = why.message();
    if (why.which() != client_error::kind::io) return text;
    switch (why.code()) {
        case ECONNREFUSED:
            return text +
                   "; no server listens there: check the host, or state the port as in "
                   "smb://HOST:PORT/SHARE";
        case ETIMEDOUT:
            return fmt::format(
                "{}; no complete answer came in {} s: check the host and the firewall, or use --timeout",
                text, timeout_seconds);
        case EHOSTUNREACH:
        case ENETUNREACH:
            return text + "; check the host and the network";
        default:
            return text;
    }
}

std::string joined_path(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : directory + "/" + name;
}

smb_url url_operand(const std::string& url, share_rule share) {
    auto parsed = parse_url(url, share);
    if (not parsed)
        refuse_usage(fmt::format("invalid value '{}' for URL: {}", without_password(url), parsed.error()));
    return *std::move(parsed);
}

remote_share::remote_share(smb_url url, const remote_options& options, remote_share* next_to)
    : own_frames_(next_to == nullptr ? std::make_unique<io::frame_pool>(frame_pool_bytes) : nullptr),
      all_tasks_(own_frames_ ? own_frames_.get() : io::frame_pool::current()),
      url_(std::move(url)) {
    apply_settings();
    if (next_to == nullptr) {
        auto loop = io::best_available();
        if (not loop) refuse(loop.error().message());
        own_loop_ = std::move(*loop);
        loop_ = own_loop_.get();
    } else {
        loop_ = next_to->loop_;
        const smb_url& other = next_to->url_;
        const bool is_same_logon = fold(url_.host) == fold(other.host) and url_.port == other.port and
                                   url_.user == other.user and url_.domain == other.domain;
        if (is_same_logon) session_ = next_to->session_;
    }
    if (session_ == nullptr)
        log_on(options);
    else
        connect_to_share();
}

void remote_share::apply_settings() {
    auto known = settings_of_host(client_settings_path(), url_.host);
    if (not known) cli::fail(known.error());
    settings_ = *std::move(known);
    if (url_.port == smb_port and settings_.port != 0) url_.port = settings_.port;
    const bool is_known_port = url_.port == (settings_.port != 0 ? settings_.port : smb_port);
    const bool is_known_domain = url_.domain.empty() or fold(url_.domain) == fold(settings_.domain);
    const bool is_known_user = url_.user.empty() or fold(url_.user) == fold(settings_.user);
    // The password is for one user of one server; another program may listen at another port.
    if (not is_known_user or not is_known_domain or not is_known_port) {
        settings_.password_file.clear();
        settings_.password_command.clear();
        return;
    }
    if (url_.user.empty()) url_.user = settings_.user;
    if (url_.domain.empty()) url_.domain = settings_.domain;
}

remote_share::~remote_share() {
    close();
}

void remote_share::close() noexcept {
    run(log_off_and_close(connections_, own_session_.get()));
    tree_.reset();
    session_ = nullptr;
    own_session_.reset();
    connections_.clear();
}

void remote_share::refuse(const std::string& why) const {
    cli::fail(url_.text() + ": " + why);
}

void remote_share::print_error(const std::string& path, const std::string& why) const {
    cli::print_error(url_.text_of(path) + ": " + why);
}

void remote_share::warn(const std::string& path, const std::string& why) const {
    cli::warn(url_.text_of(path) + ": " + why);
}

void remote_share::fail(const std::string& path, const std::string& why) {
    close();
    cli::fail(url_.text_of(path) + ": " + why);
}

void remote_share::fail_here(const std::string& why) {
    close();
    cli::fail(why);
}

smb::wire::decoded<smb::auth::nt_hash> remote_share::password_hash(const remote_options& options,
                                                                   const std::string& user) const {
    const auto hash_in_file = [](const std::string& path) {
        const auto line = password_in_file(path);
        if (not line) cli::fail(password_problem(path, line.error()));
        return smb::auth::nt_hash::of_password(line->view());
    };
    if (not options.password_file.empty()) return hash_in_file(options.password_file);
    if (const char* const given = std::getenv("SLUICE_PASSWORD"); given != nullptr)
        return smb::auth::nt_hash::of_password(given);
    if (not settings_.password_file.empty()) return hash_in_file(settings_.password_file);
    if (not settings_.password_command.empty()) {
        const auto printed =
            password_of_command(settings_.password_command, {.host = url_.host, .user = user});
        if (not printed) refuse(printed.error());
        return smb::auth::nt_hash::of_password(printed->view());
    }
    const secret_text typed = ask_password("Password of " + user + " on " + url_.host);
    return smb::auth::nt_hash::of_password(typed.view());
}

smb::auth::credentials remote_share::credentials(const remote_options& options) const {
    smb::auth::credentials who{.user = url_.user,
                               .domain = url_.domain,
                               .workstation = {},
                               .target_name = "cifs/" + url_.host,
                               .hash = {}};
    if (options.is_guest) {
        who.user.clear();
        return who;
    }
    if (who.user.empty()) {
        const char* const login = std::getenv("USER");
        if (login == nullptr) refuse("missing user name; use smb://USER@HOST/SHARE, or --guest");
        who.user = login;
    }
    auto hash = password_hash(options, who.user);
    if (not hash) refuse("the password is not UTF-8");
    who.hash = std::move(*hash);
    return who;
}

void remote_share::log_on(const remote_options& options) {
    const auto addresses = io::resolve(address(), url_.port);
    if (not addresses) refuse(resolution_problem(address(), addresses.error()));
    const smb::auth::credentials who = credentials(options);
    const connection_options how{
        .server_name = url_.host,
        .dialect_max = dialect_of(options.dialect_max),
        .signs = not options.is_unsigned,
        .encryption = encrypts(options) ? encryption::required : encryption::as_server_requires,
        .channels = options.channels,
        .connect_timeout = std::chrono::seconds(options.timeout_seconds),
        .compresses = options.compresses};
    const dependencies deps{.loop = *loop_, .random = random_, .clock = clock_};
    auto dialled = run(dial(deps, *addresses, how));
    if (not dialled) refuse(connection_problem(dialled.error(), options.timeout_seconds));
    connections_.push_back(dialled->release());
    auto logged_on = run(session::log_on(*connections_.front(), who));
    if (not logged_on) fail(url_.path, connection_problem(logged_on.error(), options.timeout_seconds));
    own_session_ = logged_on->release();
    session_ = own_session_.get();
    if (url_.share.empty()) return;
    connect_to_share();
    if (options.channels > 1)
        add_channels(options.channels - 1, *addresses, session_->first().options(), who);
}

void remote_share::connect_to_share() {
    auto connected = run(tree::connect(*session_, url_.share));
    if (not connected) fail(url_.path, connected.error().message());
    tree_ = connected->release();
}

// Connects further channels to the addresses that the server reported, in order, or to the first
// address if those do not answer. If fewer channels can be opened, reports it and continues.
void remote_share::add_channels(unsigned count, std::span<const io::socket_address> known,
                                const connection_options& how, const smb::auth::credentials& who) {
    connection_options same = how;
    same.client_guid = session_->first().agreed().client_guid;
    const auto named = run(tree_->interfaces(url_.port));
    const dependencies deps{.loop = *loop_, .random = random_, .clock = clock_};
    for (unsigned i = 0; i != count; ++i) {
        std::vector<io::socket_address> candidates(known.begin(), known.end());
        if (named and not named->empty()) candidates.insert(candidates.begin(), (*named)[i % named->size()]);
        auto dialled = run(dial(deps, candidates, same));
        outcome<void> bound = failed(client_error::of_io("open another channel", ECANCELED));
        if (dialled) {
            connections_.push_back(dialled->release());
            bound = run(session_->bind(*connections_.back(), who));
        }
        if (dialled and bound) continue;
        warn(url_.path, fmt::format("opened only {} of {} channels: {}", i + 1, count + 1,
                                    (dialled ? bound.error() : dialled.error()).message()));
        return;
    }
}

}  // namespace sluice::cli
