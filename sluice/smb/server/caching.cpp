#include "sluice/smb/server/caching.hpp"

namespace sluice::smb::server {

io::task<caching_outcome> make_way_for_open(request&, file_state&, caching_intent) noexcept {
    co_return caching_outcome::clear;
}

void grant_caching(request&, open& fresh, const wire::create_args&, wire::create_reply& reply) {
    fresh.oplock = wire::oplock_level::none;
    reply.oplock_level = fresh.oplock;
}

void end_read_caching(smb_server&, file_state&, const open*) noexcept {}

io::task<caching_outcome> make_way_for_name_change(request&, file_state&, const open*) noexcept {
    co_return caching_outcome::clear;
}

void end_caching(smb_server&, open&) noexcept {}

}  // namespace sluice::smb::server
