#include "sluice/smb/wire/file/oplock_break.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/lease_breaks.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;
using wire::oplock_level;

namespace {

template <class Reply>
[[nodiscard]] nt_status reply_with(request& r, const Reply& reply) noexcept {
    byte_writer* const body = r.begin_reply(64);
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, wire::oplock_break_reply{reply});
    return nt_status::success;
}

[[nodiscard]] std::shared_ptr<lease> breaking_oplock_of(open& one) noexcept {
    const file_section held(*one.file);
    const std::shared_ptr<lease>& its = one.in_file(held).lease;
    return its != nullptr and its->is_oplock() and its->is_breaking() ? its : nullptr;
}

// [MS-SMB2] 3.3.5.22.1
[[nodiscard]] nt_status serve_oplock(request& r, const wire::oplock_break& answer) {
    const std::shared_ptr<open> one = r.find_open(answer.file);
    if (one == nullptr) return nt_status::file_closed;
    if (answer.oplock_level == oplock_level::lease) return nt_status::invalid_parameter;
    if (one->file == nullptr) return nt_status::invalid_oplock_protocol;
    const std::shared_ptr<lease> held = breaking_oplock_of(*one);
    if (held == nullptr) return nt_status::invalid_oplock_protocol;
    const bool is_known =
        answer.oplock_level == oplock_level::none or answer.oplock_level == oplock_level::level_2;
    const nt_status taken =
        is_known ? take_answer(r, held, state_of(answer.oplock_level)) : nt_status::invalid_parameter;
    if (taken != nt_status::success) {
        // A holder that keeps more than it may loses all its caching.
        revoke_caching(r.host(), *held);
        return nt_status::invalid_oplock_protocol;
    }
    return reply_with(r, wire::oplock_break{.oplock_level = answer.oplock_level, .file = one->id});
}

// The client uses the lease, so it has the replies that granted it.
void end_replays(request& r, lease& of) {
    std::vector<std::shared_ptr<open>> opens;
    {
        const file_section held(*of.file);
        for (open* const one : of.opens)
            opens.push_back(one->shared_from_this());
    }
    for (const std::shared_ptr<open>& one : opens)
        if (not one->is_persistent()) r.host().replays.end_eligibility(*one);
}

// [MS-SMB2] 3.3.5.22.2
[[nodiscard]] nt_status serve_lease(request& r, const wire::lease_break& answer) {
    const std::shared_ptr<lease> held =
        r.host().leases.find({.client = r.connection().agreed.client, .key = answer.key});
    if (held == nullptr) return nt_status::object_name_not_found;
    ENSURE(not held->is_oplock() and held->who().key == answer.key,
           "a lease is found by its key, and an oplock not");
    const nt_status taken = take_answer(r, held, answer.state);
    if (taken != nt_status::success) return taken;
    end_replays(r, *held);
    return reply_with(r, wire::lease_break{.key = answer.key, .state = answer.state});
}

}  // namespace

io::task<nt_status> serve_oplock_break(request& r) {
    const auto args = wire::decode_oplock_break(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const auto* oplock = std::get_if<wire::oplock_break>(&args->acknowledged))
        co_return serve_oplock(r, *oplock);
    co_return serve_lease(r, std::get<wire::lease_break>(args->acknowledged));
}

}  // namespace sluice::smb::server
