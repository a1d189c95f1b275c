#include "tests/smb_simulation/clients/nonconforming_client.hpp"

#include <algorithm>
#include <array>

#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/message/tree_disconnect.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

namespace {

constexpr std::uint8_t rename_class = 10;  // FileRenameInformation

}  // namespace

nonconforming_client::nonconforming_client(io::io_multiplexer& loop, io::socket_handle socket,
                                           const clock_source& clock, const habits& how)
    : simulated_client(std::move(socket), clock, how.seed), loop_(loop), how_(how) {}

void nonconforming_client::adjust(wire::header& header) {
    header.credits = static_cast<std::uint16_t>(random_.below(8) + 1);
    if (header.command != command::cancel) return;
    header.message_id = next_message_id_ == 0 ? 0 : random_.below(next_message_id_);
    if (not async_ids_.empty() and random_.below(4) != 0) {
        header.flags |= wire::header_flags::async;
        header.async_id = async_ids_[random_.below(async_ids_.size())];
    }
}

void nonconforming_client::take_message(const wire::message_view& message) {
    const wire::header& header = message.header();
    if (header.command == command::oplock_break and header.message_id == ~std::uint64_t{0}) {
        put_acknowledgement(message);
        return;
    }
    if (header.status == wire::nt_status::pending) {
        async_ids_.push_back(header.async_id);
        return;
    }
    ++replies_;
    if (header.command == command::create) take_open(message);
    if (not wire::is_error(header.status)) ++successes_;
}

void nonconforming_client::take_open(const wire::message_view& message) {
    durable_open asked;
    if (auto found = asked_.extract(message.header().message_id)) asked = std::move(found.mapped());
    const bool is_claim = claims_.erase(message.header().message_id) != 0;
    if (wire::is_error(message.header().status)) return;
    const auto reply = wire::decode_create_reply(message);
    if (not reply) return;
    reclaimed_ += is_claim;
    files_.push_back(reply->file);
    asked.file = reply->file;
    if (reply->contexts.durable) durables_.push_back(std::move(asked));
}

wire::file_id nonconforming_client::some_file() {
    if (files_.empty() or random_.below(20) == 0) return {};
    return files_[random_.below(files_.size())];
}

io::task<void> nonconforming_client::live() {
    io::task<void> living = live_once();
    co_await std::move(living);
    if (not how_.dial or not problem_.empty()) co_return;
    // Some come back too late: a durable handle is kept for a minute.
    const deadline away(std::chrono::seconds(random_.below(4) == 0 ? 61 : random_.below(30)));
    (void)co_await io::co_sleep(loop_, away);
    initialise_file(how_.dial());
    files_.clear();
    async_ids_.clear();
    asked_.clear();
    io::task<void> living_again = live_once();
    co_await std::move(living_again);
}

io::task<void> nonconforming_client::live_once() {
    io::task_group leaving(loop_);
    if (how_.stays_at_most.count() != 0) leaving.spawn(leave_after(loop_, how_.stays_at_most));
    io::task<bool> setting_up = set_up();
    if (co_await std::move(setting_up)) {
        for (const durable_open& kept : std::exchange(durables_, {}))
            if (credits_ > 1) claim(kept);
        io::task<void> acting = act();
        co_await std::move(acting);
        // A client that will come back needs the replies that grant durable handles.
        if (how_.dial) {
            io::task<void> listening = hear_out();
            co_await std::move(listening);
        }
    }
    leaving.cancel();
    co_await leaving.join();
    (void)socket_.close();
}

io::task<void> nonconforming_client::hear_out() {
    while (problem_.empty() and awaited_ > async_ids_.size()) {
        io::task<bool> sending = send();  // breaks are answered in the meantime
        if (not co_await std::move(sending)) co_return;
        io::task<bool> taking = take_reply();
        if (not co_await std::move(taking)) co_return;
    }
}

io::task<void> nonconforming_client::act() {
    for (unsigned done = 0; done < how_.requests and problem_.empty(); ++done) {
        while (credits_ < 4 and problem_.empty()) {
            // Others may hold the files that our requests wait for: a client that would wait
            // forever disconnects instead.
            if (awaited_ == 0 or awaited_ <= async_ids_.size()) co_return;
            io::task<bool> taking = take_reply();
            if (not co_await std::move(taking)) co_return;
        }
        put_one();
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return;
        if (random_.below(3) == 0 and awaited_ > async_ids_.size()) {
            io::task<bool> taking = take_reply();
            if (not co_await std::move(taking)) co_return;
        }
        if (random_.below(10) == 0) {
            const deadline pause(std::chrono::microseconds(random_.below(5000)));
            (void)co_await io::co_sleep(loop_, pause);
        }
    }
}

void nonconforming_client::put_one() {
    switch (random_.below(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
            return put_create();
        case 4:
        case 5:
        case 6:
            return put_data_request();
        case 7:
        case 8:
            return put_lock();
        case 9:
            return put(command::close, wire::close_args{.file = some_file()});
        case 10:
            return put_cancel();
        case 11:
            return put_rename();
        case 12:
            return put(
                command::change_notify,
                wire::change_notify_args{
                    .output_bytes_max = 1024, .file = some_file(), .filter = wire::completion_filter(0xfff)});
        case 13:
            return put_compound();
        case 14:
            if (random_.below(6) != 0) return put(command::echo, wire::echo_args{});
            return put(command::tree_disconnect, wire::tree_disconnect_args{});
        default:
            if (random_.below(12) != 0) return put(command::echo, wire::echo_args{});
            return put(command::logoff, wire::logoff_args{});
    }
}

void nonconforming_client::put_create() {
    constexpr std::array names{"", "a", "b", "dir", "dir\\c", "a:stream"};
    const std::string name = wire::utf16_of(names[random_.below(names.size())]).value();
    wire::create_args args{.desired_access = wire::file_all_access,
                           .share_access = wire::share_access(random_.below(8)),
                           .disposition = wire::create_disposition(random_.below(6)),
                           .name = view(name)};
    if (random_.below(4) != 0) args.share_access = wire::share_access(7);
    if (random_.below(6) == 0) args.options |= wire::create_options::delete_on_close;
    if (name == wire::utf16_of("dir").value()) args.options |= wire::create_options::directory_file;
    switch (random_.below(4)) {
        case 0:
            args.oplock_level = wire::oplock_level::batch;
            break;
        case 1:
            args.oplock_level = wire::oplock_level::exclusive;
            break;
        case 2:
            args.oplock_level = wire::oplock_level::lease;
            args.contexts.lease.emplace();
            args.contexts.lease->key.bytes[0] = static_cast<std::byte>(random_.below(3));
            args.contexts.lease->state = wire::lease_state(random_.below(8));
            break;
        default:
            break;
    }
    if (random_.below(3) == 0) {
        args.contexts.durable = true;
        asked_[next_message_id_] = {.file = {}, .name = name, .lease = args.contexts.lease};
    }
    put(command::create, args);
}

void nonconforming_client::claim(const durable_open& kept) {
    wire::create_args args{.desired_access = wire::file_all_access,
                           .share_access = wire::share_access(7),
                           .disposition = wire::create_disposition::open,
                           .name = view(kept.name)};
    args.oplock_level = kept.lease ? wire::oplock_level::lease : wire::oplock_level::batch;
    args.contexts.lease = kept.lease;
    args.contexts.durable_reconnect = kept.file;
    claims_.insert(next_message_id_);
    put(command::create, args);
}

void nonconforming_client::put_data_request() {
    const std::array<std::byte, 100> data{};
    const std::uint64_t offset = random_.below(1000);
    if (random_.below(2) == 0)
        put(command::write, wire::write_args{.file = some_file(), .offset_bytes = offset, .data = data});
    else
        put(command::read, wire::read_args{.file = some_file(), .offset_bytes = offset, .length_bytes = 100});
}

void nonconforming_client::put_lock() {
    const wire::raw_lock_element element = random_lock(4);
    put(command::lock,
        wire::lock_args{.file = some_file(), .elements = wire::lock_list(std::span(&element, 1))});
}

void nonconforming_client::put_rename() {
    std::array<std::byte, 256> room{};
    byte_writer writer(room);
    const auto encoded = encode(
        writer,
        wire::rename_information{.replace_if_exists = random_.below(2) == 0,
                                 .target = random_.below(2) == 0 ? std::string("b") : std::string("dir\\c")});
    ENSURE(encoded.has_value());
    put(command::set_info, wire::set_info_args{.type = wire::info_type::file,
                                               .information_class = rename_class,
                                               .file = some_file(),
                                               .input = *writer.finish()});
}

void nonconforming_client::put_cancel() {
    put(command::cancel, wire::cancel_args{});
}

// CREATE, WRITE and CLOSE in one frame; the latter two use the open of the first.
void nonconforming_client::put_compound() {
    const std::string name = wire::utf16_of("b").value();
    const std::array<std::byte, 8> data{};
    begin_compound();
    put(command::create, wire::create_args{.desired_access = wire::file_all_access,
                                           .share_access = wire::share_access(7),
                                           .disposition = wire::create_disposition::open_if,
                                           .name = view(name)});
    is_related_ = true;
    put(command::write, wire::write_args{.file = wire::file_id_of_previous, .data = data});
    put(command::close, wire::close_args{.file = wire::file_id_of_previous});
    is_related_ = false;
    end_compound();
}

// Breaks are answered late, or never.
void nonconforming_client::put_acknowledgement(const wire::message_view& notification) {
    if (credits_ == 0 or random_.below(3) == 0) return;
    const auto broken = wire::decode_oplock_break_reply(notification);
    if (not broken) {
        problem_ = "a break that cannot be decoded";
        return;
    }
    if (const auto* lease = std::get_if<wire::lease_break_notification>(&broken->sent)) {
        put(command::oplock_break,
            wire::oplock_break_args{.acknowledged =
                                        wire::lease_break{.key = lease->key, .state = lease->new_state}});
    } else if (const auto* oplock = std::get_if<wire::oplock_break>(&broken->sent)) {
        put(command::oplock_break, wire::oplock_break_args{.acknowledged = *oplock});
    }
}

}  // namespace sluice::smb_simulation
