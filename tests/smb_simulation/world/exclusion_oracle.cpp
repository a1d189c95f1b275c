#include "tests/smb_simulation/world/exclusion_oracle.hpp"

#include <algorithm>

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::access_mask;
using wire::command;
using wire::share_access;

namespace {

[[nodiscard]] bool has_any(access_mask access, access_mask of) noexcept {
    return (access & of) != access_mask::none;
}

// Returns the sharing that other opens must allow for an access ([MS-FSA] 2.1.5.1.2).
[[nodiscard]] share_access needed_by(access_mask access) noexcept {
    share_access needed = share_access::none;
    constexpr auto everything = access_mask::generic_all | access_mask::maximum_allowed;
    if (has_any(access, access_mask::read_data | access_mask::execute | access_mask::generic_read |
                            access_mask::generic_execute | everything))
        needed |= share_access::read;
    if (has_any(access,
                access_mask::write_data | access_mask::append_data | access_mask::generic_write | everything))
        needed |= share_access::write;
    if (has_any(access, access_mask::delete_object | everything)) needed |= share_access::remove;
    return needed;
}

[[nodiscard]] bool allows(share_access allowed, share_access needed) noexcept {
    return (needed & allowed) == needed;
}

[[nodiscard]] bool is_overlap(const wire::lock_element& one, const wire::lock_element& other) noexcept {
    return one.length_bytes != 0 and other.length_bytes != 0 and
           one.offset_bytes < other.offset_bytes + other.length_bytes and
           other.offset_bytes < one.offset_bytes + one.length_bytes;
}

}  // namespace

exclusion_oracle::file_name exclusion_oracle::name_of(const wire::file_id& file) noexcept {
    return {file.persistent_part.value(), file.volatile_part.value()};
}

void exclusion_oracle::end_session(std::uint64_t session) {
    if (session == 0) return;
    ended_sessions_.insert(session);
    std::erase_if(opens_, [&](const auto& each) { return each.second.session == session; });
}

void exclusion_oracle::on_request(const seen_request& request) {
    if (request.command == command::logoff or request.command == command::tree_disconnect)
        end_session(request.session);
    if (request.command == command::close) opens_.erase(name_of(request.file));
    if (request.command != command::lock) return;
    const auto found = opens_.find(name_of(request.file));
    if (found == opens_.end()) return;
    for (const wire::lock_element& each : request.locks) {
        if (not wire::has(each.flags, wire::lock_flags::unlock)) continue;
        found->second.last_unlock = request.sequence;
        std::erase_if(found->second.locks, [&](const wire::lock_element& held) {
            return held.offset_bytes == each.offset_bytes and held.length_bytes == each.length_bytes;
        });
    }
}

void exclusion_oracle::on_closed(std::size_t connection, std::uint64_t session) {
    end_session(session);
    std::erase_if(opens_, [&](const auto& each) { return each.second.connection == connection; });
}

void exclusion_oracle::on_reply(const seen_request& request, const seen_reply& reply) {
    if (not reply.is_success() or ended_sessions_.contains(request.session)) return;
    if (request.command == command::create) take_open(request, reply);
    if (request.command == command::lock) take_locks(request);
}

void exclusion_oracle::take_open(const seen_request& request, const seen_reply& reply) {
    const bool is_stream = request.name.find(std::string(":\0", 2)) != std::string::npos;
    if (reply.file_number == 0 or is_stream or request.closes_itself) return;
    const open_file fresh{.file_number = reply.file_number,
                          .connection = request.connection,
                          .session = request.session,
                          .access = request.access,
                          .share = request.share};
    const share_access needed = needed_by(fresh.access);
    for (const auto& [name, other] : opens_) {
        const share_access needed_by_other = needed_by(other.access);
        if (other.file_number != fresh.file_number or name == name_of(reply.file)) continue;
        if (needed == share_access::none or needed_by_other == share_access::none) continue;
        ++pairs_;
        if (allows(other.share, needed) and allows(fresh.share, needed_by_other)) continue;
        report("two opens of file " + std::to_string(fresh.file_number) + " exclude each other",
               {fresh.connection, other.connection});
    }
    opens_[name_of(reply.file)] = fresh;
}

void exclusion_oracle::take_locks(const seen_request& request) {
    const auto found = opens_.find(name_of(request.file));
    if (found == opens_.end() or found->second.last_unlock > request.sequence) return;
    for (const wire::lock_element& each : request.locks) {
        if (wire::has(each.flags, wire::lock_flags::unlock)) continue;
        check_lock(found->second, each);
        found->second.locks.push_back(each);
    }
}

void exclusion_oracle::check_lock(const open_file& by, const wire::lock_element& wanted) {
    for (const auto& [name, other] : opens_) {
        if (other.file_number != by.file_number or &other == &by) continue;
        for (const wire::lock_element& held : other.locks) {
            if (not is_overlap(held, wanted)) continue;
            ++lock_pairs_;
            if (wire::has(held.flags, wire::lock_flags::exclusive) or
                wire::has(wanted.flags, wire::lock_flags::exclusive))
                report("locks of file " + std::to_string(by.file_number) + " overlap",
                       {by.connection, other.connection});
        }
    }
}

}  // namespace sluice::smb_simulation
