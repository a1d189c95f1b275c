#include "tests/smb_simulation/clients/scripted_client.hpp"

#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

scripted_client::scripted_client(loops_world& in, std::uint16_t number, std::uint64_t seed)
    : simulated_client(in.connect(number), in.clock(), seed * 64 + number), world_(in) {
    guid_.bytes.fill(static_cast<std::byte>(number));
}

void scripted_client::adjust(wire::header& header) {
    header.credits = 32;
    if (header.command != command::cancel) return;
    header.message_id = cancelled_;
    const auto async_id = async_ids_.find(cancelled_);
    if (async_id == async_ids_.end()) return;
    header.flags |= wire::header_flags::async;
    header.async_id = async_id->second;
}

io::task<bool> scripted_client::join(std::string_view share) {
    const std::string name(share);
    io::task<bool> logging_on = log_on_again(0);
    if (not co_await std::move(logging_on)) co_return false;
    io::task<bool> connecting = use(name);
    co_return co_await std::move(connecting);
}

io::task<bool> scripted_client::join_session_of(const scripted_client& first) {
    guid_ = first.guid_;
    io::task<bool> negotiating = negotiate();
    if (not co_await std::move(negotiating)) co_return false;
    io::task<bool> binding = bind_to(first);
    co_return co_await std::move(binding);
}

io::task<bool> scripted_client::log_on_again(std::uint64_t previous_session) {
    previous_session_id_ = previous_session;
    io::task<bool> negotiating = negotiate();
    if (not co_await std::move(negotiating)) co_return false;
    io::task<bool> logging_on = log_on();
    co_return co_await std::move(logging_on);
}

io::task<bool> scripted_client::use(std::string_view share) {
    io::task<bool> connecting = connect_tree(std::string(share));
    const bool is_answered = co_await std::move(connecting);
    co_return is_answered and tree_id_ != 0;
}

wire::create_args scripted_client::for_everything() {
    return {.desired_access = wire::file_all_access,
            .share_access = wire::share_access(7),
            .disposition = wire::create_disposition::open_if};
}

wire::create_args scripted_client::alone() {
    wire::create_args how = for_everything();
    how.share_access = wire::share_access::none;
    return how;
}

std::uint64_t scripted_client::send_create(std::string_view name, wire::create_args how) {
    const std::string spelled = wire::utf16_of(name).value();
    how.name = view(spelled);
    return send(command::create, how);
}

void scripted_client::send_cancel(std::uint64_t message_id) {
    cancelled_ = message_id;
    put(command::cancel, wire::cancel_args{});
}

io::task<nt_status> scripted_client::answer_to(std::uint64_t message_id) {
    for (;;) {
        if (not outgoing_.empty()) {
            io::task<bool> sending = simulated_client::send();
            if (not co_await std::move(sending)) break;
        }
        if (has_answer_to(message_id)) co_return status_of(message_id);
        io::task<bool> taking = take_reply();
        if (not co_await std::move(taking)) break;
    }
    co_return nt_status::network_name_deleted;
}

io::task<scripted_client::open_file> scripted_client::create(std::string name, wire::create_args how) {
    const std::uint64_t opening = send_create(name, how);
    io::task<nt_status> waiting = answer_to(opening);
    const nt_status status = co_await std::move(waiting);
    EXPECT_EQ(status, nt_status::success) << name << ": " << wire::name_of(status);
    co_return status == nt_status::success ? opened_by(opening) : open_file{};
}

io::task<void> scripted_client::listen() {
    for (;;) {
        io::task<bool> taking = take_reply();
        if (not co_await std::move(taking)) break;
        if (outgoing_.empty()) continue;
        io::task<bool> sending = simulated_client::send();
        if (not co_await std::move(sending)) break;
    }
    leave();
}

io::task<void> scripted_client::pause(std::chrono::microseconds most) {
    const deadline until(std::chrono::microseconds(random_.below(static_cast<std::uint64_t>(most.count()))));
    (void)co_await io::co_sleep(world_.clients_loop(), until);
}

io::task<void> scripted_client::stay(std::chrono::seconds time) {
    const deadline until(time);
    (void)co_await io::co_sleep(world_.clients_loop(), until);
}

void scripted_client::fall_silent() {
    (void)socket_.shutdown(io::direction::out);
    (void)socket_.shutdown(io::direction::in);
}

void scripted_client::take_message(const wire::message_view& message) {
    const wire::header& header = message.header();
    if (header.message_id == wire::notification_message_id) {
        ++breaks_;
        acknowledge(message);
        return;
    }
    if (header.status == nt_status::pending) {
        async_ids_[header.message_id] = header.async_id;
        return;
    }
    const bool is_first = statuses_.emplace(header.message_id, header.status).second;
    if (not is_first) problem_ = "a second final reply";
    async_ids_.erase(header.message_id);
    last_message_.assign(message.bytes().begin(), message.bytes().end());
    if (header.command != command::create or header.status != nt_status::success) return;
    const auto reply = wire::decode_create_reply(message);
    if (not reply) return;
    opened_[header.message_id] = {.file = reply->file, .oplock = reply->oplock_level};
}

void scripted_client::acknowledge(const wire::message_view& message) {
    const auto broken = wire::decode_oplock_break_reply(message);
    if (not broken) return;
    if (const auto* const lease = std::get_if<wire::lease_break_notification>(&broken->sent)) {
        if (wire::has(lease->flags, wire::lease_break_flags::acknowledgement_required))
            put(command::oplock_break,
                wire::oplock_break_args{wire::lease_break{.key = lease->key, .state = lease->new_state}});
    } else if (const auto* const oplock = std::get_if<wire::oplock_break>(&broken->sent)) {
        put(command::oplock_break, wire::oplock_break_args{*oplock});
    }
}

}  // namespace sluice::smb_simulation
