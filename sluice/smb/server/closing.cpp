#include "sluice/smb/server/closing.hpp"

#include "sluice/smb/server/caching.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/status_of_error.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// The last open of a file takes it along, if it was to be removed; but not before the streams of it that are
// still open ([MS-FSA] 2.1.5.5).
[[nodiscard]] nt_status remove_if_last(smb_server& host, open& one) noexcept {
    file_state& file = *one.file;
    if (not file.opens().empty() or not file.is_delete_pending) return nt_status::success;
    if (file.key().stream == 0 and one.tree->target->files().has_open_streams(file.key())) {
        file.waits_for_streams = host.opens.find(one.id);
        return nt_status::success;
    }
    const result<void> removed = one.node->remove();
    return removed ? nt_status::success : status_of(removed.error());
}

// The last stream of a file that waited for it. Whoever removed the file has had the answer.
void remove_base_if_last(const open& one) noexcept {
    const std::shared_ptr<file_state> base = one.file->base;
    if (base == nullptr or one.tree->target->files().has_open_streams(base->key())) return;
    if (const std::shared_ptr<open> last = std::exchange(base->waits_for_streams, nullptr))
        (void)last->node->remove();
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
        status = remove_if_last(host, one);
        remove_base_if_last(one);
    }
    if (one.pipe != nullptr) one.pipe->end();
    one.watch.reset();
    one.scan.reset();
    host.opens.remove(one);  // perhaps the last to hold it: nothing of it is touched after
    return status;
}

}  // namespace sluice::smb::server
