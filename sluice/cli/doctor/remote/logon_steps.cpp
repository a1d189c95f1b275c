#include <algorithm>
#include <array>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cli/doctor/remote/logon.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/client/dial.hpp"
#include "sluice/smb/client/tree.hpp"
#include "sluice/smb/server/session/user_database.hpp"
#include "sluice/smb/wire/message/echo.hpp"

namespace sluice::cli::doctor {

using namespace smb::client;  // NOLINT: the names of one component

namespace {

constexpr std::chrono::seconds reply_within{4};
constexpr unsigned echoes_max = 20;
constexpr std::uint64_t read_bytes_max = 16U << 20;
constexpr std::size_t piece_bytes = 1U << 20;
constexpr std::chrono::seconds read_within{2};

using steady = std::chrono::steady_clock;

[[nodiscard]] std::chrono::microseconds since(steady::time_point began) {
    return std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - began);
}

io::task<void> measure_echoes(connection& over, logon_facts& seen) noexcept {
    const request_options how{.step = "echo"};
    for (unsigned i = 0; i != echoes_max; ++i) {
        const auto began = steady::now();
        io::task<outcome<reply>> asking = over.call(smb::wire::command::echo, smb::wire::echo_args{}, how);
        const outcome<reply> answered = co_await std::move(asking);
        if (not answered) {
            seen.echo = answered.error();
            co_return;
        }
        seen.echoes.push_back(since(began));
    }
}

io::task<void> read_file(tree& in, const std::string& path, logon_facts& seen) noexcept {
    const open_options how{.shares = smb::wire::share_access::read | smb::wire::share_access::write |
                                     smb::wire::share_access::remove};
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(path, how);
    outcome<not_null_ptr<remote_file>> opened = co_await std::move(opening);
    if (not opened) {
        seen.file = opened.error();
        co_return;
    }
    const std::unique_ptr<remote_file> file = opened->release();
    std::vector<std::byte> piece(std::min<std::size_t>(piece_bytes, file->read_bytes_max()));
    const auto began = steady::now();
    while (not is_directory(file->status()) and seen.read_bytes < read_bytes_max and
           steady::now() - began < read_within) {
        io::task<outcome<std::size_t>> reading = file->co_read(piece, seen.read_bytes);
        const outcome<std::size_t> got = co_await std::move(reading);
        if (not got) seen.file = got.error();
        if (not got or *got == 0) break;
        seen.read_bytes += *got;
        seen.read_took = since(began);
    }
    io::task<outcome<file_status>> ending = file->co_close();
    (void)co_await std::move(ending);
}

io::task<void> use_share(session& in, const remote_target& target, logon_facts& seen) noexcept {
    io::task<outcome<not_null_ptr<tree>>> connecting = tree::connect(in, target.share);
    outcome<not_null_ptr<tree>> connected = co_await std::move(connecting);
    if (not connected) {
        seen.share = connected.error();
        co_return;
    }
    const std::unique_ptr<tree> share = connected->release();
    seen.is_share_connected = true;
    io::task<outcome<std::vector<io::socket_address>>> asking = share->interfaces(target.port);
    const auto named = co_await std::move(asking);
    if (named)
        for (const io::socket_address& each : *named)
            seen.interfaces.push_back(each.text());
    if (not target.path.empty()) {
        io::task<void> reading = read_file(*share, target.path, seen);
        co_await std::move(reading);
    }
}

io::task<void> use_session(connection& over, const remote_target& target, const smb::auth::credentials& who,
                           logon_facts& seen) noexcept {
    io::task<outcome<not_null_ptr<session>>> logging_on = session::log_on(over, who);
    outcome<not_null_ptr<session>> logged_on = co_await std::move(logging_on);
    if (not logged_on) {
        seen.logon = logged_on.error();
        co_return;
    }
    const std::unique_ptr<session> user = logged_on->release();
    seen.is_logged_on = true;
    seen.is_encrypted = user->encrypts();
    io::task<void> measuring = measure_echoes(over, seen);
    co_await std::move(measuring);
    if (not target.share.empty()) {
        io::task<void> using_it = use_share(*user, target, seen);
        co_await std::move(using_it);
    }
    if (over.is_broken()) co_return;
    io::task<void> leaving = user->log_off();
    co_await std::move(leaving);
}

io::task<void> run_steps(dependencies deps, const remote_target& target, const io::socket_address& address,
                         const smb::auth::credentials& who, bool signs, logon_facts& seen) noexcept {
    const connection_options how{.server_name = target.host,
                                 .dialect_min = smb::wire::dialect::smb_2_0_2,
                                 .signs = signs,
                                 .reply_timeout = reply_within};
    io::task<outcome<not_null_ptr<connection>>> dialling = dial(deps, std::span(&address, 1), how);
    outcome<not_null_ptr<connection>> dialled = co_await std::move(dialling);
    if (not dialled) {
        seen.connection = dialled.error();
        co_return;
    }
    const std::unique_ptr<connection> over = dialled->release();
    io::task<void> using_it = use_session(*over, target, who, seen);
    co_await std::move(using_it);
    io::task<void> ending = over->close();
    co_await std::move(ending);
}

}  // namespace

logon_facts log_on_to(const remote_target& target, const io::socket_address& address,
                      const smb::auth::credentials& who, bool signs) {
    logon_facts seen;
    auto loop = io::best_available();
    if (not loop) {
        seen.connection = client_error::of_io("create an event loop", loop.error());
        return seen;
    }
    system_random random;
    system_clock_source clock;
    const dependencies deps{.loop = **loop, .random = random, .clock = clock};
    io::sync_wait(**loop, run_steps(deps, target, address, who, signs, seen));
    return seen;
}

known_account account_in_file(const std::string& users_file, const smb::auth::credentials& who) {
    const std::string path = users_file.empty() ? smb::server::user_database::default_path() : users_file;
    const auto loaded = smb::server::user_database::load(path, {});
    if (not loaded or not who.hash) return known_account::unknown;
    if (not(*loaded)->contains(who.user)) return known_account::missing;
    const auto known = (*loaded)->find(who.user, who.domain);
    if (not known) return known_account::missing;
    const bool is_same = smb::auth::equal_in_constant_time(known->hash.view(), who.hash->view());
    return is_same ? known_account::same_password : known_account::wrong_password;
}

}  // namespace sluice::cli::doctor
