#include "tests/smb_simulation/world/exchanges.hpp"

#include <algorithm>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/frame.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

namespace {

void decode_into(seen_request& seen, const wire::message_view& message) {
    switch (seen.command) {
        case command::create:
            if (const auto args = wire::decode_create(message)) {
                seen.access = args->desired_access;
                seen.share = args->share_access;
                seen.name.assign(reinterpret_cast<const char*>(args->name.data()), args->name.size());
                if (args->contexts.lease) seen.lease_key = args->contexts.lease->key;
            }
            return;
        case command::close:
            if (const auto args = wire::decode_close(message)) seen.file = args->file;
            return;
        case command::read:
            if (const auto args = wire::decode_read(message)) {
                seen.file = args->file;
                seen.offset_bytes = args->offset_bytes;
            }
            return;
        case command::write:
            if (const auto args = wire::decode_write(message)) {
                seen.file = args->file;
                seen.offset_bytes = args->offset_bytes;
                seen.data.assign(args->data.begin(), args->data.end());
            }
            return;
        case command::oplock_break:
            if (const auto args = wire::decode_oplock_break(message)) {
                if (const auto* const lease = std::get_if<wire::lease_break>(&args->acknowledged)) {
                    seen.lease_key = lease->key;
                    seen.keeps_read = wire::has(lease->state, wire::lease_state::read);
                } else if (const auto* const oplock = std::get_if<wire::oplock_break>(&args->acknowledged)) {
                    seen.file = oplock->file;
                    seen.keeps_read = oplock->oplock_level == wire::oplock_level::level_2;
                }
            }
            return;
        case command::lock:
            if (const auto args = wire::decode_lock(message)) {
                seen.file = args->file;
                for (std::size_t i = 0; i != args->elements.size(); ++i)
                    seen.locks.push_back(args->elements[i]);
            }
            return;
        default:
            return;
    }
}

void decode_into(seen_reply& seen, command code, const wire::message_view& message) {
    if (not seen.is_success()) return;
    if (code == command::create) {
        const auto reply = wire::decode_create_reply(message);
        if (not reply) return;
        seen.file = reply->file;
        seen.oplock = reply->oplock_level;
        if (reply->contexts.on_disk_id) seen.file_number = reply->contexts.on_disk_id->file;
        const auto& lease = reply->contexts.lease;
        if (lease and not wire::has(lease->flags, wire::lease_flags::break_in_progress))
            seen.lease = lease->state;
    } else if (code == command::read) {
        if (const auto reply = wire::decode_read_reply(message))
            seen.data.assign(reply->data.begin(), reply->data.end());
    }
}

}  // namespace

std::size_t exchanges::connect(std::size_t client) {
    connections_.emplace_back().client = client;
    return connections_.size() - 1;
}

void exchanges::sent(std::size_t connection, bytes_view frames) {
    while (not frames.empty()) {
        const auto length = wire::decode_frame_prefix(*frames.first(wire::frame_prefix_bytes), frames.size());
        if (not length) return;
        last_create_.reset();
        wire::compound_reader reader(*frames.slice({wire::frame_prefix_bytes, *length}), 64);
        while (not reader.done()) {
            const auto message = reader.next();
            if (message) take_request(connection, *message);
        }
        frames = *frames.from(wire::frame_prefix_bytes + *length);
    }
}

void exchanges::take_request(std::size_t number, const wire::message_view& message) {
    const wire::header& header = message.header();
    if (header.command == command::cancel) return;
    connection& by = connections_[number];
    seen_request seen{.connection = number,
                      .client = by.client,
                      .sequence = ++sequence_,
                      .message_id = header.message_id,
                      .command = header.command,
                      .session = header.session_id};
    decode_into(seen, message);
    const bool is_of_create = wire::has(header.flags, wire::header_flags::related) and last_create_;
    if (is_of_create and seen.file == wire::file_id_of_previous) {
        seen.create = last_create_;
        seen.file = {};
        if (seen.command == command::close) by.unanswered[*last_create_].closes_itself = true;
    }
    if (seen.command == command::create) last_create_ = header.message_id;
    by.session = header.session_id;
    if (fault_ == mutation::opens_share_nothing) seen.share = wire::share_access::none;
    if (fault_ == mutation::locks_are_exclusive)
        for (wire::lock_element& each : seen.locks)
            if (each.flags == wire::lock_flags::shared) each.flags = wire::lock_flags::exclusive;
    for (oracle* const each : oracles_)
        each->on_request(seen);
    by.unanswered[header.message_id] = std::move(seen);
}

void exchanges::received(std::size_t connection, const wire::message_view& message,
                         std::uint64_t begin_offset, std::uint64_t end_offset) {
    last_answered_.reset();
    const wire::header& header = message.header();
    if (header.message_id == wire::notification_message_id) {
        if (fault_ != mutation::breaks_get_lost) take_break(connection, message, begin_offset, end_offset);
        return;
    }
    if (header.status == nt_status::pending) {
        if (not connections_[connection].unanswered.contains(header.message_id))
            record_problem("an interim reply to a request that waits for none", connection);
        return;
    }
    ++replies_;
    if (fault_ == mutation::reply_gets_lost and replies_ == 50) return;
    take_final(connection, message);
    if (fault_ == mutation::reply_is_repeated and replies_ == 50) take_final(connection, message);
}

void exchanges::take_final(std::size_t number, const wire::message_view& message) {
    const wire::header& header = message.header();
    auto asked = connections_[number].unanswered.extract(header.message_id);
    if (not asked) {
        record_problem("a second final reply to request " + std::to_string(header.message_id), number);
        return;
    }
    const seen_request& request = asked.mapped();
    seen_reply reply{.sequence = ++sequence_, .status = header.status};
    decode_into(reply, request.command, message);
    if (fault_ == mutation::reads_are_old and request.command == command::read and not reply.data.empty())
        reply.data.back() ^= std::byte{0xff};
    for (oracle* const each : oracles_)
        each->on_reply(request, reply);
    last_answered_ = request;
}

void exchanges::take_break(std::size_t number, const wire::message_view& message, std::uint64_t begin_offset,
                           std::uint64_t end_offset) {
    const auto sent = wire::decode_oplock_break_reply(message);
    if (not sent) {
        record_problem("a break that cannot be decoded", number);
        return;
    }
    seen_break seen{.connection = number,
                    .client = connections_[number].client,
                    .begin_offset = begin_offset,
                    .end_offset = end_offset};
    if (const auto* const lease = std::get_if<wire::lease_break_notification>(&sent->sent)) {
        seen.lease_key = lease->key;
        seen.keeps_read = wire::has(lease->new_state, wire::lease_state::read);
        seen.needs_answer = wire::has(lease->flags, wire::lease_break_flags::acknowledgement_required);
    } else if (const auto* const oplock = std::get_if<wire::oplock_break>(&sent->sent)) {
        seen.file = oplock->file;
        seen.keeps_read = oplock->oplock_level == wire::oplock_level::level_2;
        // Only exclusive and batch oplocks are broken to level II.
        seen.needs_answer = seen.keeps_read;
    }
    for (oracle* const each : oracles_)
        each->on_break(seen);
}

std::vector<std::size_t> exchanges::connections_of_same_client(std::size_t connection) const {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i != connections_.size(); ++i)
        if (i != connection and not connections_[i].is_closed and
            connections_[i].client == connections_[connection].client)
            others.push_back(i);
    return others;
}

void exchanges::reached(std::size_t, const std::vector<reach>& others) {
    if (not last_answered_) return;
    for (oracle* const each : oracles_)
        each->on_reach(*last_answered_, others);
}

void exchanges::closed(std::size_t number, bool by_server) {
    connection& which = connections_[number];
    which.is_closed = true;
    which.is_lost |= by_server;
    for (oracle* const each : oracles_)
        each->on_closed(number, which.session);
}

void exchanges::expect_all_answered(std::size_t connection) {
    for (const auto& [id, request] : connections_[connection].unanswered)
        record_problem(std::string(wire::name_of(request.command)) + " has no final reply", connection);
}

std::string exchanges::verdict() {
    std::string text;
    const auto add = [&](const std::vector<oracle::violation>& found) {
        for (const oracle::violation& each : found) {
            const bool is_about_lost = std::ranges::any_of(
                each.connections, [&](std::size_t number) { return connections_[number].is_lost; });
            if (not is_about_lost) text += each.text + "\n";
        }
    };
    for (oracle* const each : oracles_) {
        each->finish();
        add(each->violations());
    }
    add(own_);
    return text;
}

}  // namespace sluice::smb_simulation
