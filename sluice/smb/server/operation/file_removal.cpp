#include "sluice/smb/server/operation/file_removal.hpp"

#include <algorithm>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/file_call.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::smb::server {

using wire::nt_status;
using removers = std::vector<std::shared_ptr<open>>;

namespace {

// Removes every name whose removal an open has requested. Touches only the nodes.
[[nodiscard]] nt_status remove_names(const removers& by) noexcept {
    nt_status status = nt_status::success;
    for (const std::shared_ptr<open>& one : by) {
        const result<void> removed = vfs::remove(*one->node);
        // Another may have removed the same name.
        const bool is_gone = not removed and removed.error() == std::errc::no_such_file_or_directory;
        if (not removed and not(is_gone and one != by.front())) status = status_of(removed.error());
    }
    return status;
}

// The same on the loop: the domain judges how long it takes.
[[nodiscard]] nt_status remove_names_inline(const removers& by) noexcept {
    if (by.empty()) return nt_status::success;
    const vfs::fs_domain::inline_call call(by.front()->node->domain());
    return remove_names(by);
}

// The removal of one file or stream, from the duty to its end.
class removal {
public:
    removal(server_context& host, io::io_multiplexer& loop, std::shared_ptr<file_state> file) noexcept
        : host_(host), file_(std::move(file)), granted_(loop), right_(granted_) {}
    removal(const removal&) = delete;
    removal& operator=(const removal&) = delete;
    ~removal() { file_->protocol().end_removal(right_, is_removed_); }

    /// False: a rename of the file is in progress; wait for granted().
    [[nodiscard]] bool begin() noexcept { return file_->protocol().begin_removal(right_); }
    [[nodiscard]] event<nt_status>& granted() noexcept { return granted_; }
    /// Takes the opens whose names go; none if a rename has replaced the file.
    [[nodiscard]] removers take_names() noexcept {
        removers by = file_->take_removers();
        if (file_->protocol().phase() != delete_phase::removing) by.clear();
        return by;
    }
    /// The names are gone, or not.
    void end(const removers& by, nt_status status) noexcept {
        if (by.empty() or status != nt_status::success) return;
        ENSURE(host_.latch().is_mine() and not is_removed_, "a file is removed once");
        vfs::volume& volume = by.front()->tree->volume();
        host_.names_of(volume, is_beyond_mount(volume, *by.front()->node)).note_removal();
        host_.files.forget(*file_);
        is_removed_ = true;
    }

private:
    server_context& host_;
    std::shared_ptr<file_state> file_;
    event<nt_status> granted_;
    name_right right_;
    bool is_removed_ = false;
};

// Removes the file on the loop, if its domain is inline and no rename or other server delays it.
[[nodiscard]] std::optional<nt_status> remove_at_once(server_context& host,
                                                      const std::shared_ptr<file_state>& file) noexcept {
    const auto is_inline = [](const auto& by) { return by->node->domain().is_inline(); };
    if (file->peers() != nullptr or not std::ranges::all_of(file->removers(), is_inline)) return std::nullopt;
    if (file->protocol().is_marked()) return std::nullopt;  // a rename has to be waited for
    removal one(host, host.background.loop(), file);
    if (not one.begin()) return std::nullopt;
    const removers by = one.take_names();
    const nt_status status = remove_names_inline(by);
    one.end(by, status);
    return status;
}

// The file stays while other servers have it open; this checks again until they have closed it, or this
// server stops. `alone` keeps them out from then on.
[[nodiscard]] io::task<void> wait_until_alone(server_context& host, file_state& file,
                                              std::optional<exclusive_claim>& alone) noexcept {
    for (std::chrono::milliseconds pause = limits::peer_pause_min;;
         pause = std::min(2 * pause, limits::peer_pause_max)) {
        if (alone.emplace(file.peers()->file())) co_return;
        alone.reset();
        const deadline until(pause);
        io::task<bool> waiting = pass(host.background.loop(), until);
        const bool has_slept = co_await unlatched(host.latch(), std::move(waiting));
        if (not has_slept) co_return;
    }
}

// On `loop`; for a file that other servers may have open, the first one.
[[nodiscard]] io::task<nt_status> remove_file(server_context& host, io::io_multiplexer& loop,
                                              std::shared_ptr<file_state> file) noexcept {
    removal one(host, loop, file);
    if (not one.begin()) (void)co_await unlatched(host.latch(), one.granted().wait());
    const removers by = one.take_names();
    if (by.empty()) co_return nt_status::success;
    std::optional<exclusive_claim> alone;
    if (file->peers() != nullptr) {
        io::task<void> waiting = wait_until_alone(host, *file, alone);
        co_await std::move(waiting);
    }
    vfs::fs_domain& domain = by.front()->node->domain();
    const nt_status status =
        co_await unlatched_call(host.latch(), domain.run(loop, [&] { return remove_names(by); }));
    one.end(by, status);
    co_return status;
}

[[nodiscard]] io::task<void> remove_and_tell(server_context& host, std::shared_ptr<file_state> file,
                                             event<nt_status>* told) noexcept {
    // As in remove_for_request().
    if (told != nullptr and file->peers() != nullptr) std::exchange(told, nullptr)->set(nt_status::success);
    io::task<nt_status> removing = remove_file(host, host.background.loop(), std::move(file));
    const nt_status status = co_await std::move(removing);
    if (told != nullptr) told->set(status);
}

// The client is not kept waiting for other servers.
[[nodiscard]] io::task<nt_status> remove_for_request(server_context& host, io::io_multiplexer& loop,
                                                     std::shared_ptr<file_state> file) noexcept {
    if (file->peers() == nullptr) co_return co_await remove_file(host, loop, std::move(file));
    host.background.spawn(remove_and_tell(host, std::move(file), nullptr));
    co_return nt_status::success;
}

[[nodiscard]] io::task<void> remove_node(server_context& host, vfs::node_ptr node,
                                         std::shared_ptr<tree> through) noexcept {
    vfs::fs_domain& domain = node->domain();
    (void)co_await unlatched_call(host.latch(),
                                  domain.run(host.background.loop(), [&] { return vfs::remove(*node); }));
    domain.discard(std::move(node), through->target);
}

}  // namespace

std::optional<nt_status> carry_out_removal(server_context& host, const std::shared_ptr<file_state>& file,
                                           open_protocol::removal_duty duty,
                                           event<nt_status>* told) noexcept {
    ENSURE(host.latch().is_mine());
    ENSURE(not duty.of_file or file->base != nullptr, "the file that waits for a stream is the stream's");
    std::optional<nt_status> status = nt_status::success;
    if (duty.of_this) {
        status = remove_at_once(host, file);
        if (not status) host.background.spawn(remove_and_tell(host, file, told));
    }
    // The client that deleted the file has its answer.
    if (duty.of_file and not remove_at_once(host, file->base))
        host.background.spawn(remove_and_tell(host, file->base, nullptr));
    return status;
}

io::task<nt_status> co_carry_out_removal(server_context& host, io::io_multiplexer& loop,
                                         std::shared_ptr<file_state> file,
                                         open_protocol::removal_duty duty) noexcept {
    ENSURE(host.latch().is_mine(), "a removal begins under the latch");
    ENSURE(not duty.of_file or file->base != nullptr, "the file that waits for a stream is the stream's");
    nt_status status = nt_status::success;
    if (duty.of_this) status = co_await remove_for_request(host, loop, file);
    if (duty.of_file) {
        const nt_status of_base = co_await remove_for_request(host, loop, file->base);
        if (status == nt_status::success) status = of_base;
    }
    co_return status;
}

void leave_uncommitted(server_context& host, const std::shared_ptr<open>& leaving,
                       bool has_created) noexcept {
    ENSURE(leaving->session == nullptr, "an open of a client is ended, not left");
    ENSURE(host.latch().is_mine(), "an open leaves under the latch");
    ENSURE(not leaving->is_closed and leaving->pending_writes == 0,
           "an open that is being made has not ended");
    leaving->is_closed = true;
    host.opens.remove(*leaving);
    if (not leaving->entry.is_inside()) {
        leaving->file.reset();
        if (has_created) remove_unopened(host, std::move(leaving->node), leaving->tree);
        return;
    }
    const std::shared_ptr<file_state> file = leaving->file;
    leaving->leave_file();
    open_protocol& protocol = file->protocol();
    const open_protocol::removal_duty duty =
        has_created ? protocol.leave_created(leaving->entry) : protocol.leave(leaving->entry);
    ENSURE(not duty.of_this or file->opens().empty(), "a file goes with its last open");
    if (has_created and duty.of_this) file->add_remover(leaving);
    file->wake_caching_waiters();
    (void)carry_out_removal(host, file, duty, nullptr);
}

void remove_unopened(server_context& host, vfs::node_ptr node, std::shared_ptr<tree> through) noexcept {
    if (node->domain().is_inline()) {
        const vfs::fs_domain::inline_call call(node->domain());
        (void)vfs::remove(*node);
        return;
    }
    host.background.spawn(remove_node(host, std::move(node), std::move(through)));
}

}  // namespace sluice::smb::server
