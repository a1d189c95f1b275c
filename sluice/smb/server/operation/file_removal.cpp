#include "sluice/smb/server/operation/file_removal.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/file_call.hpp"
#include "sluice/smb/server/net/own_change.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"
#include "sluice/smb/server/operation/recycle_report.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::smb::server {

using wire::nt_status;
using removers = std::vector<std::shared_ptr<open>>;

namespace {

// Whether removed files go to the recycle bin of the volume, if it has one.
enum class removed_to : std::uint8_t { bin, nowhere };

// Removes every name whose removal an open has requested. Touches only the nodes.
[[nodiscard]] nt_status remove_names(const removers& by, removed_to where, own_change& seen) noexcept {
    nt_status status = nt_status::success;
    for (const std::shared_ptr<open>& one : by) {
        seen.begin(*one->node);
        const result<void> removed =
            where == removed_to::bin ? vfs::recycle(*one->node) : vfs::remove(*one->node);
        // Another may have removed the same name.
        const bool is_gone = not removed and removed.error() == std::errc::no_such_file_or_directory;
        if (not removed and not(is_gone and one != by.front())) status = status_of(removed.error());
    }
    // The file of a stream keeps its name.
    seen.end(status == nt_status::success, by.front()->node.get());
    return status;
}

// The same on the loop: the domain judges how long it takes.
[[nodiscard]] nt_status remove_names_inline(const removers& by, removed_to where, own_change& seen) noexcept {
    if (by.empty()) return nt_status::success;
    const vfs::fs_domain::inline_call call(by.front()->node->domain());
    return remove_names(by, where, seen);
}

enum class claim_outcome : std::uint8_t {
    claimed,
    checked,  // another server checks the file, or removes one that had its number
    open,     // another server has it open
};

// The removal of one file or stream, from the duty to its end.
class removal {
public:
    removal(server_context& host, io::io_multiplexer& loop, std::shared_ptr<file_state> file) noexcept
        : host_(host), file_(std::move(file)), granted_(loop), right_(granted_) {}
    removal(const removal&) = delete;
    removal& operator=(const removal&) = delete;
    ~removal() {
        const file_section held(*file_);
        file_->end_removal(held, right_, false);
        alone_.reset();
    }

    /// False: a rename of the file is in progress; wait for granted().
    [[nodiscard]] bool begin() noexcept {
        const file_section held(*file_);
        return file_->protocol(held).begin_removal(right_);
    }
    /// Begins it, if it need not wait: every removal by name is quick, and no rename or
    /// other server delays it.
    [[nodiscard]] bool begin_at_once() noexcept {
        const auto is_inline = [](const auto& by) {
            return by->node->domain().is_inline(waits_of_change(*by->node));
        };
        const file_section held(*file_);
        open_protocol& protocol = file_->protocol(held);
        const bool is_quick = not file_->has_peers() and protocol.are_names_free() and
                              std::ranges::all_of(file_->removers(held), is_inline);
        if (not is_quick) return false;
        ENSURE(protocol.begin_removal(right_), "a removal that nothing delays begins");
        return true;
    }
    [[nodiscard]] one_shot_event<nt_status>& granted() noexcept { return granted_; }
    /// Keeps other servers out of the file from now on, unless one has it open or checks it.
    [[nodiscard]] claim_outcome claim() noexcept {
        if (not file_->has_peers()) return claim_outcome::claimed;
        const file_section held(*file_);
        if (alone_ or alone_.emplace(file_->peers(held)->file())) return claim_outcome::claimed;
        const bool is_checked = alone_->is_busy();
        alone_.reset();
        return is_checked ? claim_outcome::checked : claim_outcome::open;
    }
    /// Takes the opens whose names go; none if a rename has replaced the file.
    [[nodiscard]] removers take_names() noexcept {
        removers unused;  // released after the section
        const file_section held(*file_);
        removers by = file_->take_removers(held);
        if (file_->protocol(held).phase() != delete_phase::removing) unused = std::exchange(by, {});
        forget_removers(held, unused);
        // One client has deleted the file, or its CREATE has failed.
        const bool is_undone =
            std::ranges::all_of(by, [&](const auto& one) { return one->in_file(held).is_creation_undone; });
        to_ = is_undone ? removed_to::nowhere : removed_to::bin;
        is_of_closes_ =
            std::ranges::all_of(by, [&](const auto& one) { return one->in_file(held).deletes_on_close; });
        return by;
    }
    [[nodiscard]] removed_to destination() const noexcept { return to_; }
    /// The reply to the client that has caused the removal. FILE_DELETE_ON_CLOSE leaves a directory
    /// that has entries, without an error, [MS-FSA] 2.1.5.5. A disposition has found it empty
    /// before.
    [[nodiscard]] nt_status reply_for(nt_status of_removal) const noexcept {
        const bool is_left = is_of_closes_ and of_removal == nt_status::directory_not_empty;
        return is_left ? nt_status::success : of_removal;
    }
    /// The names are gone, or not. Without this, nothing was removed.
    void end(const removers& by, nt_status status, own_change& seen) noexcept {
        const bool is_removed = not by.empty() and status == nt_status::success;
        // Some of several names may be gone in any case.
        if (not by.empty()) show(by, is_removed, seen);
        if (is_removed) {
            vfs::volume& volume = by.front()->through->volume();
            host_.names_of(volume, is_beyond_mount(volume, *by.front()->node)).count_removal();
        }
        // Also after a success: streams may be lost.
        if (not by.empty()) report_recycle_problem(host_, by.front()->through->volume());
        const file_section held(*file_);
        ENSURE(not is_removed or file_->protocol(held).phase() == delete_phase::removing,
               "a file that was removed was being removed");
        if (is_removed) host_.files.forget(held, *file_);
        // Before another file can have its name and number.
        forget_removers(held, by);
        file_->end_removal(held, right_, is_removed);
        alone_.reset();
    }

private:
    // A client keeps its lease of the directory if it has asked for the removal, and has caused it.
    void show(const removers& by, bool is_removed, own_change& seen) noexcept {
        if (not seen.concerns_cached()) return;
        std::optional<wire::lease_key> closer;
        {
            const file_section held(*file_);
            closer = file_->last_closer_parent(held);
        }
        const bool is_of_one = std::ranges::all_of(
            by, [&](const auto& one) { return one->parent_key and one->parent_key == closer; });
        if (is_removed and is_of_one)
            seen.break_leases(*by.front());
        else
            seen.break_all_leases();
    }

    server_context& host_;
    std::shared_ptr<file_state> file_;
    one_shot_event<nt_status> granted_;
    name_right right_;
    std::optional<exclusive_claim> alone_;  // under the mutex of the file
    removed_to to_ = removed_to::bin;
    bool is_of_closes_ = false;  // all names go because of FILE_DELETE_ON_CLOSE
};

// Removes the file on the loop, if its domain is inline and no rename or other server delays it.
[[nodiscard]] std::optional<nt_status> remove_at_once(server_context& host,
                                                      const std::shared_ptr<file_state>& file) noexcept {
    removal one(host, host.background.loop(), file);
    if (not one.begin_at_once()) return std::nullopt;
    const removers by = one.take_names();
    own_change seen(host);
    const nt_status status = remove_names_inline(by, one.destination(), seen);
    one.end(by, status, seen);
    return one.reply_for(status);
}

// The file stays while other servers have it open; this checks again until they have closed it, or
// this server stops.
[[nodiscard]] io::task<void> wait_until_alone(server_context& host, removal& one) noexcept {
    for (std::chrono::milliseconds pause = limits::peer_pause_min; one.claim() != claim_outcome::claimed;
         pause = std::min(2 * pause, limits::peer_pause_max)) {
        const deadline until(pause);
        io::task<bool> waiting = pass(host.background.loop(), until);
        const bool has_slept = co_await within_work(std::move(waiting));
        if (not has_slept) co_return;
    }
}

// Carries out a removal that has begun, on `loop`; on the first one while other servers may open
// the file.
[[nodiscard]] io::task<nt_status> finish(server_context& host, io::io_multiplexer& loop,
                                         removal& one) noexcept {
    const removers by = one.take_names();
    if (by.empty()) co_return nt_status::success;
    if (one.claim() != claim_outcome::claimed) {
        io::task<void> waiting = wait_until_alone(host, one);
        co_await std::move(waiting);
    }
    vfs::fs_domain& domain = by.front()->node->domain();
    const vfs::waits_for_calls waits = waits_of_change(*by.front()->node);
    own_change seen(host);
    const nt_status status = co_await within_work(
        domain.run(loop, [&] { return remove_names(by, one.destination(), seen); }, waits));
    one.end(by, status, seen);
    co_return one.reply_for(status);
}

// Claims a file, also if another server is checking it. False: one has it open, or checks it again
// and again.
[[nodiscard]] io::task<bool> claim_soon(io::io_multiplexer& loop, removal& one) noexcept {
    for (unsigned attempts = 1;; ++attempts) {
        const claim_outcome claimed = one.claim();
        if (claimed != claim_outcome::checked) co_return claimed == claim_outcome::claimed;
        if (attempts == limits::peer_attempts_max) co_return false;
        const deadline until(limits::peer_pause_min);
        io::task<bool> waiting = pass(loop, until);
        const bool has_slept = co_await within_work(std::move(waiting));
        if (not has_slept) co_return false;
    }
}

[[nodiscard]] io::task<void> remove_and_notify(server_context& host, std::unique_ptr<removal> one,
                                               bool has_begun, one_shot_event<nt_status>* removed) noexcept {
    if (not has_begun) (void)co_await within_work(one->granted().wait());
    if (removed != nullptr) {  // the client is not kept waiting for other servers
        io::task<bool> claiming = claim_soon(host.background.loop(), *one);
        const bool is_alone = co_await std::move(claiming);
        if (not is_alone) std::exchange(removed, nullptr)->set(nt_status::success);
    }
    io::task<nt_status> finishing = finish(host, host.background.loop(), *one);
    const nt_status status = co_await std::move(finishing);
    if (removed != nullptr) removed->set(status);
}

// The client is not kept waiting for other servers. So the reply follows the removal only if none
// of them has the file open, and no rename delays the removal: the other servers may open the file
// until it is claimed.
[[nodiscard]] io::task<nt_status> remove_for_request(server_context& host, io::io_multiplexer& loop,
                                                     std::shared_ptr<file_state> file) noexcept {
    const bool has_peers = file->has_peers();
    auto one = std::make_unique<removal>(host, has_peers ? host.background.loop() : loop, std::move(file));
    const bool has_begun = one->begin();
    bool is_alone = not has_peers;
    if (has_peers and has_begun) {
        io::task<bool> claiming = claim_soon(loop, *one);
        is_alone = co_await std::move(claiming);
    }
    if (not is_alone) {
        host.background.spawn(remove_and_notify(host, std::move(one), has_begun, nullptr));
        co_return nt_status::success;
    }
    if (not has_begun) (void)co_await within_work(one->granted().wait());
    io::task<nt_status> finishing = finish(host, loop, *one);
    co_return co_await std::move(finishing);
}

// As remove_for_request(), but by a task of the server.
void remove_in_background(server_context& host, std::shared_ptr<file_state> file,
                          one_shot_event<nt_status>* removed) noexcept {
    const bool has_peers = file->has_peers();
    auto one = std::make_unique<removal>(host, host.background.loop(), std::move(file));
    const bool has_begun = one->begin();
    if (removed != nullptr and has_peers and not has_begun)
        std::exchange(removed, nullptr)->set(nt_status::success);
    host.background.spawn(remove_and_notify(host, std::move(one), has_begun, removed));
}

[[nodiscard]] io::task<void> remove_node(server_context& host, vfs::node_ptr node,
                                         std::shared_ptr<share> through) noexcept {
    vfs::fs_domain& domain = node->domain();
    (void)co_await within_work(domain.run(host.background.loop(), [&] { return vfs::remove(*node); }));
    domain.discard(std::move(node), std::move(through));
}

}  // namespace

std::optional<nt_status> carry_out_removal(server_context& host, const std::shared_ptr<file_state>& file,
                                           open_protocol::removal_duty duty,
                                           one_shot_event<nt_status>* removed) noexcept {
    ENSURE(not duty.of_file or file->base != nullptr, "the file that waits for a stream is the stream's");
    std::optional<nt_status> status = nt_status::success;
    if (duty.of_this) {
        status = remove_at_once(host, file);
        if (not status) remove_in_background(host, file, removed);
    }
    // The client that deleted the file has its answer.
    if (duty.of_file and not remove_at_once(host, file->base))
        remove_in_background(host, file->base, nullptr);
    return status;
}

io::task<nt_status> co_carry_out_removal(server_context& host, io::io_multiplexer& loop,
                                         std::shared_ptr<file_state> file,
                                         open_protocol::removal_duty duty) noexcept {
    ENSURE(loop.is_owner(), "a request removes a file on its loop");
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
    ENSURE(leaving->end() != open_phase::live, "an open of a client is ended, not left");
    if (const std::shared_ptr<session> of = leaving->detach()) of->remove(leaving->id.volatile_part.value());
    open_protocol::removal_duty duty;
    bool was_inside = false;
    if (const std::shared_ptr<file_state> file = leaving->file) {
        const file_section held(*file);
        open_in_file& place = leaving->in_file(held);
        ENSURE(place.pending_writes == 0, "a CREATE that has failed does not empty the file any more");
        was_inside = place.entry.is_inside();
        if (was_inside) {
            leaving->leave_file(held);
            open_protocol& protocol = file->protocol(held);
            duty = has_created ? protocol.leave_created(place.entry) : protocol.leave(place.entry);
            ENSURE(not duty.of_this or file->opens(held).empty(), "a file goes with its last open");
            place.is_creation_undone = has_created;
            if (has_created and duty.of_this) file->add_remover(held, leaving);
            file->wake_caching_waiters(held);
            place.claim.cancel();
            place.claim_to_base.cancel();
        }
    }
    host.opens.remove(*leaving);
    if (was_inside)
        (void)carry_out_removal(host, leaving->file, duty, nullptr);
    else if (has_created)
        remove_unopened(host, std::move(leaving->node), leaving->through);
}

void remove_unopened(server_context& host, vfs::node_ptr node, std::shared_ptr<share> through) noexcept {
    if (node->domain().is_inline()) {
        const vfs::fs_domain::inline_call call(node->domain());
        (void)vfs::remove(*node);
        return;
    }
    host.background.spawn(remove_node(host, std::move(node), std::move(through)));
}

}  // namespace sluice::smb::server
