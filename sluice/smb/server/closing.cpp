#include "sluice/smb/server/closing.hpp"

#include "sluice/smb/server/caching.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/status_of_error.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// The last open of a file takes it along, if it was to be removed.
[[nodiscard]] nt_status remove_if_last(open& one) noexcept {
    file_state& file = *one.file;
    if (not file.opens().empty() or not file.is_delete_pending) return nt_status::success;
    const result<void> removed = one.node->remove();
    return removed ? nt_status::success : status_of(removed.error());
}

}  // namespace

nt_status end_open(smb_server& host, open& one) noexcept {
    if (one.is_closed) return nt_status::file_closed;
    one.is_closed = true;
    if (one.session != nullptr) one.session->opens.erase(one.id.volatile_part.value());
    if (one.durable and one.durable->end)
        host.later.strike_out(*std::exchange(one.durable->end, std::nullopt));
    if (one.create_guid) host.replays.remove({.client = one.client, .create = *one.create_guid});
    nt_status status = nt_status::success;
    if (one.file != nullptr) {
        one.file->locks().release_all(one);
        one.file->remove(one);
        if (one.deletes_on_close) {
            one.file->is_delete_pending = true;
            end_handle_caching(host, *one.file, &one);
            end_watches_of_removed(*one.file);
        }
        end_caching(host, one);
        status = remove_if_last(one);
    }
    if (one.pipe != nullptr) one.pipe->end();
    one.watch.reset();
    one.scan.reset();
    host.opens.remove(one);  // perhaps the last to hold it: nothing of it is touched after
    return status;
}

}  // namespace sluice::smb::server
