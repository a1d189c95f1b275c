#include "sluice/smb/wire/file/flush.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

io::task<nt_status> serve_flush(request& r) {
    const auto args = wire::decode_flush(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const std::shared_ptr<open> one = r.find_open(args->file);
    if (one == nullptr) co_return nt_status::file_closed;
    if (not one->is_pipe()) {
        constexpr access_mask writes = access_mask::write_data | access_mask::append_data;
        if (not wire::has_any(one->access, writes)) co_return nt_status::access_denied;
        io::task<result<void>> flushing = one->node->co_flush();
        const result<void> flushed = co_await within_work(std::move(flushing));
        if (not flushed) co_return status_of(flushed.error());
    }
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    encode(*body, wire::flush_reply{});
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
