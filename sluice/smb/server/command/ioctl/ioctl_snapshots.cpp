// Previous versions, which Windows shows in a tab of the properties of a file.

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"
#include "sluice/vfs/snapshot/snapshots.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

using found_times = std::expected<std::vector<vfs::snapshot_time>, nt_status>;

// The times of all snapshots of the share ([MS-SMB2] 2.2.32.2): a client asks for the file at each
// of them. A list may take long, so a tree connection makes one at a time; otherwise it could
// occupy all workers.
[[nodiscard]] io::task<found_times> times_of(control& c) noexcept {
    tree& present = *c.r.tree;
    const std::shared_ptr<vfs::snapshots> source = present.target->configuration().snapshots;
    if (source == nullptr) co_return found_times{};
    change_turn turn(c.r, present.snapshot_lists);
    if (not turn.is_taken()) {
        io::task<nt_status> waiting = turn.wait();
        const nt_status refused = co_await std::move(waiting);
        if (refused != nt_status::success) co_return std::unexpected(refused);
    }
    const auto list = [&]() -> found_times {
        auto listed = source->list();
        if (not listed) return std::unexpected(status_of(listed.error()));
        return *std::move(listed);
    };
    co_return co_await c.r.call(source->domain(), list, vfs::waits_for_calls::yes);
}

}  // namespace

io::task<nt_status> enumerate_snapshots(control& c) {
    if (c.args.output_bytes_max < wire::snapshot_array_bytes_min) co_return nt_status::invalid_parameter;
    io::task<found_times> asking = times_of(c);
    const found_times times = co_await std::move(asking);
    if (not times) co_return times.error();
    const std::size_t needed_bytes = wire::snapshot_array_bytes(times->size());
    const bool fits = needed_bytes <= c.args.output_bytes_max;
    byte_writer* const output = c.begin_output(fits ? needed_bytes : wire::snapshot_array_bytes_min);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    wire::encode_snapshot_array(*output, *times, c.args.output_bytes_max);
    ENSURE(output->position() == (fits ? needed_bytes : wire::snapshot_array_bytes_min),
           "the reply has the length that was computed");
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
