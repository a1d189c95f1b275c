#include "tests/smb_simulation/world/cache_oracle.hpp"

#include <algorithm>

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

const cache_oracle::open_register* cache_oracle::register_of(const wire::file_id& file) const {
    const auto found = opens_.find({file.persistent_part.value(), file.volatile_part.value()});
    return found == opens_.end() ? nullptr : &found->second;
}

void cache_oracle::on_request(const seen_request& request) {
    if (request.command == command::close) end_open(request.file);
    if (request.command == command::logoff) end_session(request.session);
    if (request.command == command::create and request.lease_key)
        creating_.insert({{.client = request.client, .lease = request.lease_key}, request.sequence});
    if (request.command != command::write) return;
    const open_register* const by = register_of(request.file);
    if (by == nullptr) return;
    writes_[by->file_number].push_back({.content = request.data, .sent = request.sequence});
    cache& own = caches_[by->key];
    own.content.reset();
    own.changed_at = request.sequence;
    ++own.writes_in_flight;
}

// A lease or an oplock ends with its last open.
void cache_oracle::end_open(const wire::file_id& file) {
    const auto ending = opens_.extract({file.persistent_part.value(), file.volatile_part.value()});
    if (not ending) return;
    const cache_key& key = ending.mapped().key;
    const bool is_last =
        std::ranges::none_of(opens_, [&](const auto& each) { return each.second.key == key; });
    if (is_last) caches_.erase(key);
}

// Other channels may still write through its opens.
void cache_oracle::end_session(std::uint64_t session) {
    for (const auto& [name, open] : opens_)
        if (open.session == session) caches_.erase(open.key);
}

void cache_oracle::on_closed(std::size_t connection, std::uint64_t session) {
    end_session(session);
    // A break that the client has not read from the connection is lost.
    for (suspicion& each : suspicions_)
        for (const reach& one : each.others)
            each.is_cleared |=
                one.connection == connection and (one.has_unread or order_ == break_order::relaxed);
}

void cache_oracle::on_reply(const seen_request& request, const seen_reply& reply) {
    fresh_suspicions_ = 0;
    if (request.command == command::create) take_open(request, reply);
    if (request.command == command::oplock_break and reply.is_success()) take_acknowledgement(request);
    const open_register* const by = register_of(request.file);
    if (by == nullptr) return;
    if (request.command == command::write) {
        for (write_seen& each : writes_[by->file_number])
            if (each.sent == request.sequence and reply.is_success()) each.answered = reply.sequence;
        if (reply.is_success()) take_write(*by, request);
        cache& own = caches_[by->key];
        own.content.reset();
        own.changed_at = reply.sequence;
        if (own.writes_in_flight != 0) --own.writes_in_flight;
    }
    const bool is_read =
        reply.is_success() or (reply.status == wire::nt_status::end_of_file and reply.data.empty());
    if (request.command == command::read and is_read) take_read(*by, request, reply);
}

// Until the server has accepted it, nothing may be cached: without an acknowledgement, the whole
// cache state is lost.
void cache_oracle::take_acknowledgement(const seen_request& request) {
    cache_key key{.client = request.client, .lease = request.lease_key};
    if (not request.lease_key)
        key.open = {request.file.persistent_part.value(), request.file.volatile_part.value()};
    const auto found = caches_.find(key);
    if (found != caches_.end() and found->second.breaks_unanswered == 1)
        found->second.may_read = request.keeps_read;
    if (found != caches_.end() and found->second.breaks_unanswered != 0) --found->second.breaks_unanswered;
}

void cache_oracle::take_open(const seen_request& request, const seen_reply& reply) {
    const cache_key wanted{.client = request.client, .lease = request.lease_key};
    if (request.lease_key) creating_.erase({wanted, request.sequence});
    if (not reply.is_success() or not request.name.starts_with('r') or reply.file_number == 0) return;
    const file_name name{reply.file.persistent_part.value(), reply.file.volatile_part.value()};
    cache_key key{.client = request.client};
    const bool is_lease = reply.oplock == wire::oplock_level::lease;
    if (is_lease)
        key.lease = request.lease_key;
    else
        key.open = name;
    opens_[name] = {.file_number = reply.file_number, .session = request.session, .key = key};
    cache& its = caches_[key];
    its.file_number = reply.file_number;
    its.granted_at = reply.sequence;
    if (its.breaks_unanswered != 0) return;
    its.may_read =
        is_lease ? wire::has(reply.lease, wire::lease_state::read) : reply.oplock != wire::oplock_level::none;
    if (broken_early_.erase(key) != 0) {
        its.may_read = false;
        ++early_breaks_;
    }
    if (not its.may_read) its.content.reset();
}

void cache_oracle::take_read(const open_register& by, const seen_request& request, const seen_reply& reply) {
    check_age(by.file_number, request, reply.data);
    compare(by, request, reply.data);
    cache& own = caches_[by.key];
    // A read sent before the grant, or concurrent with a write of the same client, may have
    // returned an old value.
    const bool is_sent_since = request.sequence > own.granted_at and request.sequence > own.changed_at;
    if (not own.may_read or own.writes_in_flight != 0 or not is_sent_since) return;
    own.content = reply.data;
    own.filled_at = reply.sequence;
}

// A client writes a value that differs from each value that it cached before.
void cache_oracle::take_write(const open_register& by, const seen_request& request) {
    compare(by, request, request.data);
}

void cache_oracle::compare(const open_register& by, const seen_request& request, const value& content) {
    for (const auto& [key, one] : caches_) {
        const bool is_other = key.client == by.key.client and key != by.key;
        if (not is_other or one.file_number != by.file_number or not one.may_read or not one.content)
            continue;
        // A request sent before the cache was filled may also have been carried out before.
        if (request.sequence < one.filled_at) continue;
        ++comparisons_;
        if (*one.content == content) continue;
        suspicions_.push_back({.key = key,
                               .connection = request.connection,
                               .text = std::string(wire::name_of(request.command)) + " " +
                                       std::to_string(request.message_id) + " on connection " +
                                       std::to_string(request.connection) + ", cached by " +
                                       (key.lease ? "lease" : "oplock " + std::to_string(key.open.second)) +
                                       " since event " + std::to_string(one.filled_at)});
        ++fresh_suspicions_;
    }
}

void cache_oracle::check_age(std::uint64_t file_number, const seen_request& request, const value& content) {
    const std::vector<write_seen>& all = writes_[file_number];
    if (content.empty()) {
        const bool is_written = std::ranges::any_of(all, [&](const write_seen& each) {
            return each.answered != 0 and each.answered < request.sequence;
        });
        if (is_written) report("a register that was written is empty", {request.connection});
        return;
    }
    const auto source = std::ranges::find(all, content, &write_seen::content);
    if (source == all.end()) {
        report("a read returns a value that was never written", {request.connection});
        return;
    }
    for (const write_seen& later : all)
        if (source->answered != 0 and source->answered < later.sent and later.answered != 0 and
            later.answered < request.sequence)
            report("a read returns a value that was overwritten before it was sent", {request.connection});
}

void cache_oracle::on_reach(const seen_request&, const std::vector<reach>& others) {
    for (auto each = suspicions_.end() - static_cast<std::ptrdiff_t>(fresh_suspicions_);
         each != suspicions_.end(); ++each)
        each->others = others;
    fresh_suspicions_ = 0;
}

void cache_oracle::on_break(const seen_break& seen) {
    ++breaks_;
    cache_key key{.client = seen.client, .lease = seen.lease_key};
    if (not seen.lease_key) key.open = {seen.file.persistent_part.value(), seen.file.volatile_part.value()};
    const auto creating = creating_.lower_bound({key, 0});
    const bool is_creating = creating != creating_.end() and creating->first == key;
    if (seen.lease_key ? is_creating : not opens_.contains(key.open)) broken_early_.insert(key);
    for (suspicion& each : suspicions_) {
        if (each.key != key or seen.keeps_read) continue;
        each.is_cleared |= order_ == break_order::relaxed;
        for (const reach& one : each.others)
            each.is_cleared |= one.connection == seen.connection and seen.end_offset <= one.arrived;
    }
    const auto found = caches_.find(key);
    if (found == caches_.end()) return;
    if (seen.needs_answer) ++found->second.breaks_unanswered;
    found->second.may_read = false;
    found->second.content.reset();
}

void cache_oracle::finish() {
    for (const suspicion& each : suspicions_) {
        if (each.is_cleared) continue;
        std::vector<std::size_t> connections{each.connection};
        for (const reach& one : each.others)
            connections.push_back(one.connection);
        report("client " + std::to_string(each.key.client) +
                   " may cache a register, but a reply to it has a changed value: " + each.text,
               std::move(connections));
    }
}

}  // namespace sluice::smb_simulation
