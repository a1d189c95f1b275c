// sluice serve: serves directories over SMB.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>

#include "sluice/base/clock.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/doctor/page_findings.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/fat/image/image_share.hpp"
#include "sluice/cli/hardening/hardening.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/password.hpp"
#include "sluice/cli/serve/banner.hpp"
#include "sluice/cli/serve/configuration_changes.hpp"
#include "sluice/cli/serve/configuration_file.hpp"
#include "sluice/cli/serve/discovery.hpp"
#include "sluice/cli/serve/homes/home_directories.hpp"
#include "sluice/cli/serve/homes/home_shares.hpp"
#include "sluice/cli/serve/host_accounts.hpp"
#include "sluice/cli/serve/interfaces.hpp"
#include "sluice/cli/serve/limits.hpp"
#include "sluice/cli/serve/listening.hpp"
#include "sluice/cli/serve/log_writer.hpp"
#include "sluice/cli/serve/loop_threads.hpp"
#include "sluice/cli/serve/opened_users.hpp"
#include "sluice/cli/serve/proc_thread_usage.hpp"
#include "sluice/cli/serve/process_resources.hpp"
#include "sluice/cli/serve/reload_requests.hpp"
#include "sluice/cli/serve/serve_command_line.hpp"
#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/serve_reports.hpp"
#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/serve/serve_shares.hpp"
#include "sluice/cli/serve/server_name.hpp"
#include "sluice/cli/serve/service/activation.hpp"
#include "sluice/cli/serve/service/service_manager.hpp"
#include "sluice/cli/serve/service/watchdog_thread.hpp"
#include "sluice/cli/serve/share_domains.hpp"
#include "sluice/cli/serve/share_journals.hpp"
#include "sluice/cli/serve/share_streams.hpp"
#include "sluice/cli/serve/shared_locks.hpp"
#include "sluice/cli/serve/signals.hpp"
#include "sluice/cli/serve/stop_deadline.hpp"
#include "sluice/cli/serve/user_groups.hpp"
#include "sluice/cli/status/observers.hpp"
#include "sluice/cli/status/web/web_sessions.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/report/log_thread.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {
namespace {

using smb::server::smb_server;
using smb::server::user_database;

// The rules that belong to no share.
void publish_rules(smb_server& server, const serve_options& options) {
    server.context().administrators.publish(users_of(options.administrators, options.groups));
    server.replace_host_rules(host_rules_of(options.allowed_hosts, options.denied_hosts));
}

void report_no_answer(const std::vector<share_options>& shares, std::string_view effect,
                      smb::server::event_log& log) {
    for (const share_options& share : shares)
        log.write(smb::server::event_severity::error, "the file system of a share does not answer",
                  {{"share", share.name}, {"path", share.path}, {"effect", effect}});
}

// For the service manager.
[[nodiscard]] std::string serving_text(std::size_t shares, const smb_server& server) {
    std::string text = fmt::format("serves {} {} at", shares, shares == 1 ? "share" : "shares");
    for (const io::socket_address& each : server.addresses())
        text += (text.ends_with(" at") ? " " : ", ") + each.text();
    return text;
}

// Carries out SIGHUP for the shares. If the file has an error, the running configuration stays in
// effect. Returns the paths of shares that are incomplete because their file systems do not answer.
[[nodiscard]] std::vector<std::string> reload_shares(smb_server& server, user_database& users,
                                                     const reload_requests::read_options& options,
                                                     const share_roots& answered, share_opener& opener,
                                                     running_configuration& running,
                                                     smb::server::event_log& log, service_manager& manager) {
    using smb::server::event_severity;
    bool keeps_users = false;
    if (options)
        if (const auto admitted = admit_users(users, *options); not admitted) {
            keeps_users = true;
            log.write(event_severity::error, "cannot apply --user; keeping the current users",
                      {{"why", admitted.error()}});
        }
    end_sessions_of_removed_users(server, log);
    auto reopened = options ? opener.reopen(*options, answered)
                            : share_opener::reopened{.shares = std::unexpected(options.error())};
    if (not reopened.shares) {
        log.write(event_severity::error, "cannot reload shares; keeping the current shares",
                  {{"why", reopened.shares.error()}});
        manager.set_status(
            "the last reload has failed: the shares are unchanged, and the log has the reason");
        return {};
    }
    server.replace_shares(*std::move(reopened.shares));
    publish_rules(server, *options);
    report_no_answer(reopened.kept, "it keeps its volume", log);
    report_no_answer(reopened.without_snapshots, "it has no previous versions until it answers", log);
    report_no_answer(reopened.left_out, "it is not served until it answers", log);
    serve_options served = *options;
    remove_missing_homes(served, reopened.without_homes);
    report_problems(server, served, users, reopened, log);
    const std::string changes = running.replace(served, keeps_users, log);
    log.write(event_severity::info, "configuration reloaded", {{"changes", changes}});
    manager.set_status(fmt::format("{}; changes of the last reload: {}",
                                   serving_text(served.shares.size(), server), changes));
    return reopened.needed;
}

// The same with the shares of the users, and with the groups of the host that they name.
[[nodiscard]] std::expected<serve_options, std::string> with_users(
    std::expected<serve_options, std::string> options, const user_database& users, host_groups& host) {
    if (not options) return options;
    if (auto added = add_home_shares(*options, home_users(*options, users)); not added)
        return std::unexpected(std::move(added.error()));
    if (auto added = add_host_groups(*options, host); not added)
        return std::unexpected(std::move(added.error()));
    expand_users(*options);
    return options;
}

// The same at startup, with the directories of the users.
[[nodiscard]] serve_options prepare_shares(serve_options options, const user_database& users,
                                           host_groups& host) {
    auto complete = with_users(std::move(options), users, host);
    if (not complete) fail(complete.error());
    if (const auto prepared = prepare_homes(*complete, accounts_of(*complete)); not prepared)
        fail(prepared.error());
    return *std::move(complete);
}

// `started` is the configuration that the server has started with.
[[nodiscard]] reload_requests::actions reload_calls(smb_server& server, user_database& users,
                                                    const serve_options& given, const serve_options& started,
                                                    const std::string& file, share_opener& opener,
                                                    host_groups& groups, smb::server::event_log& log,
                                                    service_manager& manager) {
    return {
        .read = [given, file, &users, &groups] { return with_users(with_file(given, file), users, groups); },
        .find_root = find_share_root,
        .find_home_roots = [accounts = accounts_of(started)](
                               const serve_options& options) { return find_home_roots(options, accounts); },
        .reload =
            [&, running = std::make_shared<running_configuration>(started)](
                const reload_requests::read_options& options, const share_roots& answered) {
                return reload_shares(server, users, options, answered, opener, *running, log, manager);
            },
        .ended = [&] { manager.reloaded(); }};
}

// Returns null if no other server serves these directories.
[[nodiscard]] std::unique_ptr<shared_locks> open_shared_locks(const serve_options& options) {
    if (options.shared_locks.empty()) return nullptr;
    auto opened = shared_locks::open(options.shared_locks);
    if (not opened) fail(opened.error().message());
    return *std::move(opened);
}

// The way of the events of a server to standard error.
struct server_logs {
    server_logs(smb::server::event_severity least, const clock_source& clock)
        : writer(least), lines(writer, least), refusals(lines, clock) {}

    log_writer writer;
    smb::server::log_thread lines;
    recent_refusals refusals;
};

// The sockets of a server that listens.
struct opened_service {
    listening_choice listening = listening_choice::as_given;
    std::unique_ptr<observers> watching;
    started_discovery discovery;
};

[[nodiscard]] std::vector<std::string> texts_of(const std::vector<io::socket_address>& addresses) {
    std::vector<std::string> texts;
    for (const io::socket_address& each : addresses)
        texts.push_back(each.text());
    return texts;
}

// Restores persistent handles, starts to listen, and opens the status socket, the metrics and the
// web page. From here on the server has tasks, so an error ends it in the same way as a signal.
[[nodiscard]] std::expected<opened_service, std::string> open_service(
    smb_server& server, secret_random_source& random, const serve_options& options,
    std::string_view web_token, const std::vector<int>& activated, const std::array<std::byte, 16>& identity,
    smb::server::event_log& log, const recent_refusals& refusals) {
    server.restore();
    const auto listening = start_listening(server, options, activated);
    if (not listening) return std::unexpected(listening.error());
    auto watching =
        observers::open(server, random,
                        {.status_socket = options.status_socket,
                         .metrics = options.metrics,
                         .web = options.web,
                         .web_token = web_token,
                         .refusals = &refusals,
                         .host_checks = doctor::page_checks(options, texts_of(server.addresses()))});
    if (not watching) return std::unexpected(watching.error());
    return opened_service{.listening = *listening,
                          .watching = *std::move(watching),
                          .discovery = start_discovery(options, server.context().configuration().name,
                                                       identity, server.addresses(), log)};
}

// Returns the account that accesses files.
[[nodiscard]] std::string runs_as_text(const serve_options& options) {
    if (options.impersonate) return "the Unix account of each user";
    return fmt::format("{} (uid {}) for all users", account_name(), geteuid());
}

void print_banner(const smb_server& server, const serve_options& options, const users_result& users,
                  const opened_service& service, const server_hardening& hardening, std::string runs_as) {
    std::error_code unknown;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    banner_facts facts{.program = unknown ? std::string("$(command -v sluice)") : program.string(),
                       .server_name = server.context().configuration().name,
                       .shares = options.shares,
                       .homes = options.homes,
                       .homes_are_read_only = options.read_only,
                       .addresses = own_addresses(),
                       .listening = {},
                       .port = 0,
                       .choice = service.listening,
                       .users = users.names,
                       .fresh_password = users.fresh_password,
                       .users_are_for_now = users.are_for_now,
                       .users_file = users.database->path(),
                       .discovery = service.discovery.where,
                       .multiplexer = std::string(io::best_available_reason()),
                       .runs_as = std::move(runs_as),
                       .hardening = hardening_text(hardening.measures()),
                       .allows_guests = options.guest,
                       .guests_write = options.guest_write,
                       .requires_signing = not options.no_signing,
                       .encrypts = options.encrypt};
    for (share_options& share : facts.shares)
        share.read_only = share.referral.empty() and (share.read_only or options.read_only);
    for (const io::socket_address& address : server.addresses()) {
        facts.listening.push_back(address.text());
        facts.port = address.port();
    }
    facts.metrics = service.watching->metrics_text();
    facts.web = service.watching->web_text();
    std::string text = banner_text(facts);
    fmt::print("{}\n", text);
    std::fflush(stdout);
    for (std::string* const secret : {&text, &facts.fresh_password})
        smb::auth::wipe(std::as_writable_bytes(std::span(*secret)));
}

[[nodiscard]] std::size_t loops_for(const serve_options& options) noexcept {
    return options.loops != 0 ? options.loops : std::min<std::size_t>(usable_processors(), loops_max);
}

// `service` may be null.
io::task<void> serve_until(smb_server& server, const opened_service* service,
                           smb::server::one_shot_event<bool>& stop) {
    (void)co_await stop.wait();
    if (service != nullptr) {
        if (service->discovery.running != nullptr) service->discovery.running->request_stop();
        io::task<void> stopping = service->watching->stop();
        co_await std::move(stopping);
    }
    io::task<void> announcing = server.announce_stop();
    co_await std::move(announcing);
    server.stop();
    io::task<void> ending = server.done();
    co_await std::move(ending);
}

// Returns the configuration of the server, without shares.
[[nodiscard]] smb::server::server_configuration configuration_for(
    const serve_options& options, std::vector<smb::server::share_configuration> shares,
    const users_result& users, const smb::server::process_resources& resources,
    const std::vector<int>& activated) {
    smb::server::server_configuration configuration;
    configuration.name = options.name.empty() ? default_server_name() : options.name;
    configuration.shares = std::move(shares);
    configuration.bounds = smb::server::server_bounds::of(resources);
    configuration.allows_guests = options.guest;
    configuration.has_directory_leases = options.directory_leases != "off";
    configuration.interfaces = interfaces_for(options, activated);
    configuration.session_lifetime = std::chrono::minutes(options.session_lifetime);
    if (options.impersonate) {
        if (geteuid() != 0)
            fail("--impersonate: only root can use the rights of other accounts; run 'sluice serve' as root");
        // The client may have written the name in another case.
        configuration.account_of =
            [&known = *users.database](const std::string& user) -> std::optional<vfs::unix_account> {
            for (const std::string& name : known.found_names())
                if (equal_ignoring_case(name, user)) return unix_account_of(name);
            return std::nullopt;
        };
    }
    if (options.encrypt) configuration.encryption = smb::server::protection::required;
    configuration.compresses = options.compression == "on";
    if (options.no_signing) configuration.signing = smb::server::protection::offered;
    if (not options.signing_algorithms.empty())
        configuration.signing_algorithms = signing_algorithms_of(options.signing_algorithms).value();
    return configuration;
}

// A call of a file system has not ended. It uses objects of the server, so no destructor may run.
// Disk images were committed after the stop began. The log may be a full pipe, so the wait for it
// is short.
[[noreturn]] void end_with_stuck_calls(const share_domains& domains, const reload_requests& reloads,
                                       smb::server::log_thread& log) {
    using smb::server::event_severity;
    const std::vector<share_domains::stuck_domain> stuck = domains.stuck();
    const std::vector<std::string> unanswered = reloads.unanswered();
    for (const std::string& path : unanswered)
        log.write(event_severity::error, "a reload waits for a file system; the server ends without it",
                  {{"path", path}});
    if (stuck.empty() and unanswered.empty())
        log.write(event_severity::error, "stop deadline exceeded; process terminated", {});
    for (const share_domains::stuck_domain& each : stuck)
        log.write(event_severity::error, "a file system does not answer; the server ends without it",
                  {{"shares", each.shares},
                   {"mount", each.where},
                   {"calls", std::to_string(each.calls)},
                   {"oldest", std::to_string(each.age.count()) + " s"}});
    (void)log.flush(std::chrono::seconds(1));
    std::_Exit(1);
}

// Workers may still close files, which uses the volumes and posts to the loop; a reload may still
// call file systems. If they do not end, the deadline ends the process.
void wait_for_threads(const share_domains& domains, const reload_requests& reloads, io::io_multiplexer& loop,
                      stop_deadline& deadline) {
    deadline.begin();
    while (domains.are_busy() or reloads.is_busy())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    io::sync_wait(loop, smb::server::next_turn(loop));
}

[[nodiscard]] smb::server::event_severity least_severity(const serve_options& options) noexcept {
    return options.verbose ? smb::server::event_severity::detail : smb::server::event_severity::info;
}

[[nodiscard]] std::vector<const smb::server::loop_activity*> all_activities(
    const smb::server::loop_activity& first, const loop_threads& others) {
    std::vector<const smb::server::loop_activity*> all = others.activities();
    all.insert(all.begin(), &first);
    return all;
}

// An address of the configuration that has no effect must not go unnoticed.
void check_activation(const std::vector<int>& activated, const serve_options& options) {
    if (not activated.empty() and (options.port != 0 or not options.listen.empty()))
        warn(
            "the sockets of the service manager replace --port and --listen; remove these, or disable the "
            "socket unit");
}

template <class Value>
[[nodiscard]] Value or_fail(result<Value> from) {
    if (not from) fail(from.error().message());
    return *std::move(from);
}

template <class Value>
[[nodiscard]] Value or_fail(std::expected<Value, std::string> from) {
    if (not from) fail(from.error());
    return *std::move(from);
}

[[nodiscard]] serve_options complete_options(const serve_options& given, const std::string& file,
                                             const std::vector<int>& activated) {
    serve_options options = or_fail(with_file(given, file));
    check_activation(activated, options);
    return options;
}

// Returns the token of the page; empty if there is none.
[[nodiscard]] secret_text token_of_page(const serve_options& options) {
    secret_text kept;
    if (options.web_token_file.empty()) return kept;
    if (options.web.empty()) fail("--web-token-file: there is no page to protect; add --web PORT");
    auto token = read_web_token(options.web_token_file);
    if (not token) fail("--web-token-file: " + token.error());
    static_assert(secret_text::bytes_max >= web_token_bytes_max);
    for (const char each : *token)
        (void)kept.append(each);
    smb::auth::wipe(std::as_writable_bytes(std::span(*token)));
    return kept;
}

// Starts the thread that samples the loops.
[[nodiscard]] std::unique_ptr<watchdog_thread> watch_loops(smb::server::loop_watchdog& watchdog,
                                                           share_domains& domains, service_manager& manager) {
    watchdog.on_blocked_call([&domains](std::uint32_t number) {
        if (const auto blocked = domains.table().find(number)) blocked->record_blocked_call();
    });
    return or_fail(watchdog_thread::start(watchdog, [&watchdog, &manager] {
        manager.keep_alive(service_manager::clock::now(), watchdog.stuck_loops());
    }));
}

// Before the first thread and ring, which inherit it.
void harden(server_hardening& by, const serve_options& options, const std::string& file,
            const user_database& users, host_groups& groups) {
    by.apply(options, file, users.path());
    if (by.confines_files()) groups.confine();
    block_signals();
}

void serve(const serve_options& given, const std::string& file) {
    const std::vector<int> activated = or_fail(take_activation_sockets());
    service_manager manager(take_service_environment(), warn);
    serve_options options = complete_options(given, file, activated);
    const secret_text web_token = token_of_page(options);
    users_result users = open_users(options);
    host_groups groups(*users.database);
    options = prepare_shares(std::move(options), *users.database, groups);
    // Before the files that describe them become inaccessible.
    const smb::server::process_resources resources = claim_process_resources();
    std::string runs_as = runs_as_text(options);
    const auto identity = discovery_identity(options);
    const share_journals journals = or_fail(share_journals::open(options));
    server_hardening hardening;
    harden(hardening, options, file, *users.database, groups);
    const auto loop = or_fail(io::best_available());
    io::frame_pool frames(frame_pool_bytes);
    const io::frame_pool::use from_pool(frames);
    const io::sigpipe_guard no_sigpipe;
    const auto others = or_fail(loop_threads::start(loops_for(options) - 1));
    system_random random;
    served_images images(*loop, random);
    share_domains domains;
    share_opener opener({*loop, images, domains, hardening, &journals, accounts_of(options)});
    auto shares = opener.open(options);
    if (not shares.shares) fail(shares.shares.error());
    const std::unique_ptr<shared_locks> peers = open_shared_locks(options);
    system_clock_source clock;
    server_logs logs(least_severity(options), clock);
    smb::server::log_thread& log = logs.lines;
    smb::server::loop_activity activity(*loop);
    const smb::server::loop_activity::use watched(activity, ::gettid());
    const auto activities = all_activities(activity, *others);
    proc_thread_usage threads;
    smb::server::loop_watchdog watchdog(activities, clock, threads, log);
    smb::server::one_shot_event<bool> stop(*loop);
    smb_server server({.loop = *loop,
                       .clock = clock,
                       .random = random,
                       .accounts = *users.database,
                       .log = logs.refusals,
                       .peers = peers.get(),
                       .other_loops = others->loops(),
                       .watchdog = &watchdog},
                      configuration_for(options, *std::move(shares.shares), users, resources, activated));
    publish_rules(server, options);
    const auto watching_loops = watch_loops(watchdog, domains, manager);
    reload_requests reloads(
        *loop, reload_calls(server, *users.database, given, options, file, opener, groups, log, manager));
    const auto ends_in_time =
        or_fail(stop_deadline::start([&] { end_with_stuck_calls(domains, reloads, log); }));
    const auto end_service = [&] { reloads.end(), stop.set(true); };
    const signals handling(
        *loop, [&] { ends_in_time->begin(), manager.stopping(); }, end_service,
        [&] { manager.reloading(), reload_users(server, *users.database, log), reloads.add(); });
    const auto service =
        open_service(server, random, options, web_token.view(), activated, identity, log, logs.refusals);
    if (service) {
        report_problems(server, options, *users.database, shares, log);
        report_other_servers(journals, log);
        print_banner(server, options, users, *service, hardening, std::move(runs_as));
        manager.ready(serving_text(options.shares.size(), server));
    } else {
        end_service();
    }
    smb::auth::wipe(std::as_writable_bytes(std::span(users.fresh_password)));
    io::sync_wait(*loop, serve_until(server, service ? &*service : nullptr, stop));
    wait_for_threads(domains, reloads, *loop, *ends_in_time);
    if (not service) fail(service.error());
}

void check_command_line(const serve_arguments& given) {
    for (const std::string& user : given.options.users)
        if (const std::string rule = validate_user(user); not rule.empty())
            refuse_usage("invalid value for --user: " + rule);  // it may contain a password
    if (given.image != image_options{} and given.options.shares.size() != 1)
        refuse_usage(fmt::format(
            "{} applies to one disk image; for several shares, use --config and set it for each share",
            text_of(given.image).substr(1)));
    if (given.options.shares.empty() and given.configuration.empty() and given.options.homes.empty())
        refuse_usage("missing argument PATH");
}

}  // namespace

void add_serve(command_syntax app) {
    const command_syntax command = app.add_subcommand("serve", "serve directories and FAT images over SMB")
                                       .group("Server")
                                       .usage("[NAME=]PATH...")
                                       .example("sluice serve ~/Public")
                                       .example("sluice serve --read-only --encrypt photos=/srv/photos")
                                       .example("sluice serve --config /etc/sluice/sluice.toml")
                                       .example("sluice serve disk.img --overlay try.overlay");
    const auto given = std::make_shared<serve_arguments>();
    declare_serve_options(command, *given);
    command.on_call([given] {
        if (given->wants_limits) return print_limits();
        given->options.confines = not given->no_confinement;
        given->options.discovery = not given->no_discovery;
        for (const std::string& path : given->paths)
            given->options.shares.push_back(parse_share(path));
        check_command_line(*given);
        if (given->image != image_options{}) given->options.shares.front().image = given->image;
        serve(given->options, given->configuration);
    });
}

}  // namespace sluice::cli
