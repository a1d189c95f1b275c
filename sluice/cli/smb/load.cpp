#include "sluice/cli/smb/load.hpp"

#include <fmt/core.h>

#include <ranges>

#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/client/dial.hpp"
#include "sluice/smb/client/directory.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/message/echo.hpp"

namespace sluice::cli {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::access_mask;
using smb::wire::create_disposition;
using smb::wire::nt_status;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::uint64_t latencies_max = 8U << 20;

[[nodiscard]] smb::auth::credentials copy_of(const smb::auth::credentials& who) {
    smb::auth::credentials copy{.user = who.user,
                                .domain = who.domain,
                                .workstation = who.workstation,
                                .target_name = who.target_name,
                                .hash = {}};
    if (who.hash) copy.hash = who.hash->copy();
    return copy;
}

[[nodiscard]] open_options for_data(create_disposition disposition) noexcept {
    return {
        .access = smb::wire::file_generic_read | smb::wire::file_generic_write | access_mask::delete_object,
        .shares =
            smb::wire::share_access::read | smb::wire::share_access::write | smb::wire::share_access::remove,
        .disposition = disposition};
}

struct write_head {
    const smb::wire::write_args& args;
    std::size_t data_bytes;
};
void encode(byte_writer& writer, const write_head& head) noexcept {
    smb::wire::encode_write_request_head(writer, head.args, head.data_bytes);
}

// As remote_file::co_read() and co_write(), but over a given channel.
struct read_place {
    mutable_bytes into;
    std::uint64_t offset;
    bool discards;
};
io::task<outcome<std::uint64_t>> read_over(connection& over, const remote_file& file,
                                           read_place at) noexcept {
    request_options how = file.in().request("read");
    how.discards = at.discards;
    how.payload_bytes = at.into.size();
    how.into = at.into;
    const smb::wire::read_args asked{.file = file.id(),
                                     .offset_bytes = at.offset,
                                     .length_bytes = static_cast<std::uint32_t>(at.into.size()),
                                     .padding = static_cast<std::uint8_t>(smb::wire::read_reply_data_offset),
                                     .flags = over.agreed().compression.is_on()
                                                  ? smb::wire::read_flags::request_compressed
                                                  : smb::wire::read_flags::none};
    io::task<outcome<reply>> asking = over.call(smb::wire::command::read, asked, how);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    co_return std::uint64_t{answered->read_bytes};
}

io::task<outcome<std::uint64_t>> write_over(connection& over, const remote_file& file, bytes_view from,
                                            std::uint64_t offset) noexcept {
    request_options how = file.in().request("write");
    how.payload_bytes = from.size();
    how.payload = from;
    const smb::wire::write_args asked{.file = file.id(), .offset_bytes = offset};
    io::task<outcome<reply>> asking =
        over.call(smb::wire::command::write, write_head{.args = asked, .data_bytes = from.size()}, how);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    co_return std::uint64_t{from.size()};
}

}  // namespace

struct load_generator::lane {
    unsigned number = 0;
    std::string directory;  // for its files; that of the first session contains the others
    std::vector<std::unique_ptr<connection>> own;  // the first one of the first session is the
                                                   // caller's
    std::unique_ptr<session> own_session;
    std::unique_ptr<tree> own_tree;
    tree* share = nullptr;
    std::vector<connection*> channels;
    std::unique_ptr<remote_file> file;
    std::uint64_t next = 0;  // offset or number of a file
};

struct load_generator::worker {
    lane* in = nullptr;
    connection* over = nullptr;
    std::uint64_t item = 0;  // the current small file
};

load_generator::load_generator(io::io_multiplexer& loop, target at, load_options how)
    : loop_(loop), at_(std::move(at)), how_(std::move(how)), payload_(how_.size_bytes, std::byte{'x'}) {}

load_generator::~load_generator() = default;

bool load_generator::is_idle(const lane& one) const noexcept {
    return one.number >= how_.connections;
}

io::task<std::string> load_generator::prepare() noexcept {
    for (unsigned number = 0; number != how_.connections + how_.idle_connections; ++number) {
        lanes_.push_back(std::make_unique<lane>());
        lane& one = *lanes_.back();
        one.number = number;
        one.directory = number == 0 ? how_.directory : fmt::format("{}/{}", how_.directory, number);
        io::task<outcome<void>> connecting = connect(one);
        outcome<void> ready = co_await std::move(connecting);
        if (ready and not is_idle(one)) {
            io::task<outcome<void>> making = at_.first->create_directory(one.directory);
            ready = co_await std::move(making);
            const bool is_there = not ready and ready.error().status() == nt_status::object_name_collision;
            if (is_there) ready = outcome<void>{};
        }
        if (ready and is_idle(one)) continue;
        if (ready and needs_big_file()) {
            connecting = fill(one);
            ready = co_await std::move(connecting);
        } else if (ready and needs_small_files()) {
            connecting = put_missing(one);
            ready = co_await std::move(connecting);
        }
        if (not ready) co_return ready.error().message();
    }
    co_return std::string();
}

io::task<outcome<void>> load_generator::connect(lane& one) noexcept {
    connection& like = at_.first->of().first();
    if (one.number == 0) {
        one.share = at_.first;
        one.channels = at_.first->of().channels();
        if (one.channels.size() != how_.channels)
            co_return failed(client_error::of_policy("bind", "fewer channels are available than requested"));
    } else {
        io::task<outcome<not_null_ptr<connection>>> dialling =
            dial(like.deps(), at_.addresses, like.options());
        auto dialled = co_await std::move(dialling);
        if (not dialled) co_return failed(dialled.error());
        one.own.push_back(dialled->release());
        const smb::auth::credentials who = copy_of(at_.who);
        io::task<outcome<not_null_ptr<session>>> logging_on = session::log_on(*one.own.front(), who);
        auto logged_on = co_await std::move(logging_on);
        if (not logged_on) co_return failed(logged_on.error());
        one.own_session = logged_on->release();
        io::task<outcome<not_null_ptr<tree>>> joining = tree::connect(*one.own_session, at_.share);
        auto joined = co_await std::move(joining);
        if (not joined) co_return failed(joined.error());
        one.own_tree = joined->release();
        one.share = one.own_tree.get();
        one.channels.push_back(one.own.front().get());
    }
    io::task<outcome<void>> binding = bind_channels(one);
    co_return co_await std::move(binding);
}

io::task<outcome<void>> load_generator::bind_channels(lane& one) noexcept {
    connection& first = *one.channels.front();
    while (one.channels.size() != how_.channels) {
        connection_options options = first.options();
        options.client_guid = first.agreed().client_guid;
        io::task<outcome<not_null_ptr<connection>>> dialling =
            dial(first.deps(), at_.addresses, std::move(options));
        auto dialled = co_await std::move(dialling);
        if (not dialled) co_return failed(dialled.error());
        one.own.push_back(dialled->release());
        const smb::auth::credentials who = copy_of(at_.who);
        io::task<outcome<void>> binding = one.own_session->bind(*one.own.back(), who);
        const outcome<void> bound = co_await std::move(binding);
        if (not bound) co_return failed(bound.error());
        one.channels.push_back(one.own.back().get());
    }
    co_return outcome<void>{};
}

// Writes the whole large file, so that reads return data and writes do not change the size.
io::task<outcome<void>> load_generator::fill(lane& one) noexcept {
    io::task<outcome<not_null_ptr<remote_file>>> opening =
        one.share->open(one.directory + "/big", for_data(create_disposition::open_if));
    auto opened = co_await std::move(opening);
    if (not opened) co_return failed(opened.error());
    one.file = opened->release();
    if (one.file->status().end_of_file_bytes == how_.file_bytes) co_return outcome<void>{};
    const std::vector<std::byte> block(std::min<std::size_t>(one.file->write_bytes_max(), 1U << 20),
                                       std::byte{'y'});
    for (std::uint64_t at = 0; at < how_.file_bytes;) {
        const std::size_t some =
            static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), how_.file_bytes - at));
        const bytes_view piece(block.data(), some);
        io::task<outcome<std::size_t>> writing = one.file->co_write(piece, at);
        const auto written = co_await std::move(writing);
        if (not written) co_return failed(written.error());
        at += some;
    }
    co_return outcome<void>{};
}

// Creates the small files; a single one for the workload open.
io::task<outcome<void>> load_generator::put_missing(lane& one) noexcept {
    const bool needs_all = counts_files() or how_.kind == load_kind::list;
    const unsigned count = needs_all ? how_.files : 1;
    for (unsigned number = 0; number != count; ++number) {
        io::task<outcome<not_null_ptr<remote_file>>> opening =
            one.share->open(small_name(one, number), for_data(create_disposition::open_if));
        auto opened = co_await std::move(opening);
        if (not opened) co_return failed(opened.error());
        const std::unique_ptr<remote_file> file = opened->release();
        if (file->status().end_of_file_bytes != payload_.size()) {
            io::task<outcome<std::size_t>> writing = file->co_write(payload_, 0);
            const auto written = co_await std::move(writing);
            if (not written) co_return failed(written.error());
        }
        io::task<outcome<file_status>> close_task = file->co_close();
        (void)co_await std::move(close_task);
    }
    co_return outcome<void>{};
}

std::string load_generator::small_name(const lane& of, std::uint64_t number) const {
    return fmt::format("{}/small{}", of.directory, number);
}

std::uint64_t load_generator::next_offset(lane& in) noexcept {
    const std::uint64_t blocks = std::max<std::uint64_t>(how_.file_bytes / how_.size_bytes, 1);
    if (how_.kind == load_kind::read or how_.kind == load_kind::write)
        return in.next++ % blocks * how_.size_bytes;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % blocks * how_.size_bytes;
}

io::task<load_outcome> load_generator::run() noexcept {
    done_ = {};
    done_.latencies_ns_by_256.reserve(1U << 20);
    for (const std::unique_ptr<lane>& one : lanes_)
        one->next = 0;
    const clock::time_point began = clock::now();
    until_ = began + how_.duration;
    io::task_group workers(loop_);
    for (const std::unique_ptr<lane>& one : lanes_ | std::views::take(how_.connections))
        for (connection* const over : one->channels)
            for (unsigned i = 0; i != how_.depth; ++i)
                workers.spawn(work({.in = one.get(), .over = over}));
    if (how_.spins) workers.spawn(stay_awake());
    co_await workers.join();
    done_.seconds = std::chrono::duration<double>(clock::now() - began).count();
    co_return std::move(done_);
}

// A loop with posted work polls instead of sleeping.
io::task<void> load_generator::stay_awake() noexcept {
    while (working_ != 0)
        co_await io::yield(loop_);
}

io::task<void> load_generator::work(worker who) noexcept {
    ++working_;
    io::task<void> working = work_until_done(who);
    co_await std::move(working);
    --working_;
}

io::task<void> load_generator::work_until_done(worker who) noexcept {
    clock::time_point began = clock::now();
    while (done_.failure.empty()) {
        if (counts_files()) {
            who.item = who.in->next++;
            if (who.item >= how_.files) co_return;
        } else if (began >= until_) {
            co_return;
        }
        io::task<outcome<std::uint64_t>> stepping = step(who);
        const outcome<std::uint64_t> moved = co_await std::move(stepping);
        if (not moved) {
            if (done_.failure.empty()) done_.failure = moved.error().message();
            co_return;
        }
        const clock::time_point ended = clock::now();
        const auto took_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(ended - began).count();
        if (done_.latencies_ns_by_256.size() < latencies_max)
            done_.latencies_ns_by_256.push_back(
                static_cast<std::uint32_t>(std::min<std::int64_t>(took_ns / 256, UINT32_MAX)));
        began = ended;
        ++done_.operations;
        done_.bytes += *moved;
    }
}

io::task<outcome<std::uint64_t>> load_generator::step(worker& who) noexcept {
    switch (how_.kind) {
        case load_kind::read:
        case load_kind::write:
        case load_kind::random_read:
        case load_kind::random_write:
            return transfer(who);
        case load_kind::put:
        case load_kind::get:
        case load_kind::remove:
        case load_kind::create:
            return with_small_file(who);
        case load_kind::open:
        case load_kind::list:
        case load_kind::echo:
            return look(who);
        case load_kind::log_on:
            return log_on_once();
    }
    return log_on_once();
}

io::task<outcome<std::uint64_t>> load_generator::transfer(worker& who) noexcept {
    const std::uint64_t offset = next_offset(*who.in);
    if (how_.kind == load_kind::read or how_.kind == load_kind::random_read)
        return read_over(*who.over, *who.in->file,
                         {.into = payload_, .offset = offset, .discards = how_.discards});
    return write_over(*who.over, *who.in->file, payload_, offset);
}

io::task<outcome<std::uint64_t>> load_generator::with_small_file(worker& who) noexcept {
    const bool makes = how_.kind == load_kind::put or how_.kind == load_kind::create;
    std::string name = how_.kind == load_kind::create
                           ? fmt::format("{}/new{}", who.in->directory, who.in->next++)
                           : small_name(*who.in, who.item);
    const open_options how = for_data(makes ? create_disposition::overwrite_if : create_disposition::open);
    io::task<outcome<not_null_ptr<remote_file>>> opening = who.in->share->open(std::move(name), how);
    auto opened = co_await std::move(opening);
    if (not opened) co_return failed(opened.error());
    const std::unique_ptr<remote_file> file = opened->release();
    outcome<std::size_t> moved = std::size_t{0};
    if (how_.kind == load_kind::put) {
        io::task<outcome<std::size_t>> writing = file->co_write(payload_, 0);
        moved = co_await std::move(writing);
    } else if (how_.kind == load_kind::get) {
        io::task<outcome<std::size_t>> reading = file->co_read(payload_, 0);
        moved = co_await std::move(reading);
    } else {
        io::task<outcome<void>> deleting = file->delete_on_close();
        const outcome<void> deleted = co_await std::move(deleting);
        if (not deleted) moved = failed(deleted.error());
    }
    io::task<outcome<file_status>> close_task = file->co_close();
    const auto closed = co_await std::move(close_task);
    if (not moved) co_return failed(moved.error());
    if (not closed) co_return failed(closed.error());
    co_return std::uint64_t{*moved};
}

io::task<outcome<std::uint64_t>> load_generator::look(worker& who) noexcept {
    if (how_.kind == load_kind::echo) {
        io::task<outcome<reply>> asking =
            who.over->call(smb::wire::command::echo, smb::wire::echo_args{}, request_options{.step = "echo"});
        const outcome<reply> answered = co_await std::move(asking);
        if (not answered) co_return failed(answered.error());
        co_return std::uint64_t{0};
    }
    if (how_.kind == load_kind::list) {
        io::task<outcome<std::vector<directory_entry>>> listing = list(*who.in->share, who.in->directory);
        const auto listed = co_await std::move(listing);
        if (not listed) co_return failed(listed.error());
        co_return std::uint64_t{0};
    }
    io::task<outcome<not_null_ptr<remote_file>>> opening = who.in->share->open(
        small_name(*who.in, 0), {.shares = smb::wire::share_access::read | smb::wire::share_access::write});
    auto opened = co_await std::move(opening);
    if (not opened) co_return failed(opened.error());
    const std::unique_ptr<remote_file> file = opened->release();
    io::task<outcome<file_status>> asking = file->co_status();
    auto status = co_await std::move(asking);
    asking = file->co_close();
    const auto closed = co_await std::move(asking);
    if (not status) co_return failed(status.error());
    if (not closed) co_return failed(closed.error());
    co_return std::uint64_t{0};
}

io::task<outcome<std::uint64_t>> load_generator::log_on_once() noexcept {
    connection& like = at_.first->of().first();
    io::task<outcome<not_null_ptr<connection>>> dialling = dial(like.deps(), at_.addresses, like.options());
    auto dialled = co_await std::move(dialling);
    if (not dialled) co_return failed(dialled.error());
    const std::unique_ptr<connection> over = dialled->release();
    const smb::auth::credentials who = copy_of(at_.who);
    io::task<outcome<not_null_ptr<session>>> logging_on = session::log_on(*over, who);
    auto logged_on = co_await std::move(logging_on);
    outcome<std::uint64_t> ended = std::uint64_t{0};
    if (logged_on) {
        io::task<void> leaving = (*logged_on)->log_off();
        co_await std::move(leaving);
    } else {
        ended = failed(logged_on.error());
    }
    io::task<void> close_task = over->close();
    co_await std::move(close_task);
    co_return ended;
}

io::task<void> load_generator::remove_files(const std::string& directory) noexcept {
    io::task<outcome<std::vector<directory_entry>>> listing = list(*at_.first, directory);
    const auto left = co_await std::move(listing);
    if (not left) co_return;
    for (const directory_entry& entry : *left) {
        io::task<outcome<void>> removing = at_.first->remove(directory + "/" + entry.name, false);
        (void)co_await std::move(removing);
    }
    io::task<outcome<void>> removing = at_.first->remove(directory, true);
    (void)co_await std::move(removing);
}

io::task<void> load_generator::clean_up(bool keeps_files) noexcept {
    for (const std::unique_ptr<lane>& one : lanes_) {
        if (one->file == nullptr) continue;
        io::task<outcome<file_status>> close_task = one->file->co_close();
        (void)co_await std::move(close_task);
    }
    for (const std::unique_ptr<lane>& one : lanes_ | std::views::reverse) {
        if (keeps_files) break;
        io::task<void> removing = remove_files(one->directory);
        co_await std::move(removing);
    }
    for (const std::unique_ptr<lane>& one : lanes_) {
        if (one->own_session != nullptr) {
            io::task<void> leaving = one->own_session->log_off();
            co_await std::move(leaving);
        }
        for (const std::unique_ptr<connection>& over : one->own) {
            io::task<void> close_task = over->close();
            co_await std::move(close_task);
        }
    }
    lanes_.clear();
}

}  // namespace sluice::cli
