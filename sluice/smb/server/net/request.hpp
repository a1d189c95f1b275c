#pragma once

#include <memory>
#include <optional>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/net/file_call.hpp"
#include "sluice/smb/server/net/replier.hpp"
#include "sluice/smb/server/net/reply.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/server/session/accessor.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/wire/file_id.hpp"

namespace sluice::smb::server {

class connection;

/// The state that the messages of a compound pass to the related ones after them ([MS-SMB2]
/// 3.3.5.2.7.2).
struct compound_state {
    std::optional<wire::file_id> file;                  // that the last CREATE made, or
                                                        // the last command used
    wire::nt_status status = wire::nt_status::success;  // from the preceding message
    std::optional<std::uint64_t> session_id;            // from the preceding message,
                                                        // if that session exists
    std::optional<std::uint32_t> tree_id;
};

/// One message of a client while it is served: the message, its session and tree, and its reply.
/// The argument of every command handler.
///
/// Lives in the frame of the coroutine that serves it, and so until the reply is on its way; the
/// connection joins all of them before it goes.
///
/// Invariants:
///   1. It is in the list of its connection as long as it exists.
///   2. It waits for one event at most, and counts as in progress at one open at most.
///   3. It has an `async_id` only if it is pending.
/// Loop-owned, by the loop of its connection.
class request {
public:
    request(replier& from, server::connection& whole, const wire::message_view& message,
            compound_state& compound) noexcept;
    request(const request&) = delete;
    request& operator=(const request&) = delete;
    ~request();

    [[nodiscard]] const wire::message_view& message() const noexcept { return message_; }
    [[nodiscard]] const wire::header& header() const noexcept { return message_.header(); }
    [[nodiscard]] server_context& host() const noexcept;
    [[nodiscard]] server::connection& connection() const noexcept { return connection_; }
    [[nodiscard]] compound_state& compound() const noexcept { return compound_; }
    [[nodiscard]] io::io_multiplexer& loop() const noexcept;

    /// Where the reply's body goes; see reply::begin().
    [[nodiscard]] byte_writer* begin_reply(std::size_t bytes_max) noexcept { return answer.begin(bytes_max); }

    /// Returns the open that a message names, or, in a related compound, the open that the
    /// preceding message used. Later related messages use this open, too. Null: FILE_CLOSED. Null
    /// also for a request that would change something too late; then lateness() has the status of
    /// the reply.
    [[nodiscard]] std::shared_ptr<open> find_open(const wire::file_id& named) noexcept;

    /// FILE_NOT_AVAILABLE if find_open() found the request to be from before its channel failed.
    [[nodiscard]] std::optional<wire::nt_status> stale_status() const noexcept { return stale_status_; }

    /// Returns whether the credit charge covers that many bytes of payload, requested or sent
    /// ([MS-SMB2] 3.3.5.2.5).
    [[nodiscard]] bool charge_covers(std::uint64_t payload_bytes) const noexcept;

    /// `co_await r.call(one, [&] { return ask(*one.node); })`: carries out a file-system call.
    /// `call` returns an nt_status, or a std::expected with one; it touches its arguments, the node
    /// and the volume. It runs at once if the domain of the node is inline, and otherwise on a
    /// worker of the domain. Other loops run meanwhile, so that everything that loops share may
    /// have changed afterwards. After an interrupt, a call that has not begun does not begin, and
    /// its outcome is the status of the interrupt. Suspends.
    template <std::invocable Call>
    [[nodiscard]] auto call(const open& on, Call call) noexcept {
        return this->call(on.node->domain(), std::move(call));
    }
    /// The same for a call that needs no open.
    template <std::invocable Call>
    [[nodiscard]] auto call(vfs::fs_domain& domain, Call call,
                            vfs::waits_for_calls waits = vfs::waits_for_calls::no) noexcept {
        return file_call(*this, domain.run(loop(), cancellation_, std::move(call), waits));
    }

    /// Waits for an event that another request sets soon. An interrupt sets it as well. Returns
    /// its value. Suspends.
    [[nodiscard]] io::task<wire::nt_status> wait(one_shot_event<wire::nt_status>& until) noexcept;

    /// Waits for `until`. First sends an interim reply, [MS-SMB2] 3.3.4.2, also for a CREATE with
    /// other messages after it, but not for a rename: clients rename in the middle of a compound,
    /// and smbtorture shows that Windows sends none. CANCEL, and the end of the session
    /// or connection, set the event to `cancelled`. Returns INSUFFICIENT_RESOURCES at once when too
    /// many requests of the connection wait, and INTERNAL_ERROR, as Windows does, for a request
    /// that may wait indefinitely with other messages after it. Suspends.
    [[nodiscard]] io::task<wire::nt_status> pend(one_shot_event<wire::nt_status>& until) noexcept;
    /// Ends the waits in pend() and wait(), the present one and later ones, and cancels the calls
    /// that have not begun.
    void interrupt(wire::nt_status why) noexcept;
    /// The same for a CANCEL of its client, which a cancel_deferral delays until its end.
    void cancel() noexcept;
    /// The status with which it must end, if it must. A request checks this after every
    /// suspension. The session or the tree may have ended before the interrupt arrives: then
    /// they refuse additions.
    [[nodiscard]] const std::optional<wire::nt_status>& interrupted() const noexcept { return interrupted_; }
    /// Returns the status for a request whose wait for caches failed: it was interrupted, or too
    /// many wait.
    [[nodiscard]] wire::nt_status wait_failure_status() const noexcept {
        return interrupted_.value_or(wire::nt_status::insufficient_resources);
    }

    /// The tree with the files of the request: that of its connection or, once it has found or
    /// entered one, that of a snapshot.
    [[nodiscard]] server::tree& files() const noexcept { return past != nullptr ? *past : *tree; }
    /// The session and tree for which the request accesses files. The request has both.
    [[nodiscard]] server::accessor accessor() const noexcept { return {session->user, files()}; }

    std::shared_ptr<server::channel> channel;  // the session's, on which the request arrived
    std::shared_ptr<server::session> session;
    std::shared_ptr<server::tree> tree;
    std::shared_ptr<server::tree> past;  // that of a snapshot; null: the files are those of now
    reply answer;
    std::vector<std::byte> error_data;              // data that some errors add to their status
    std::shared_ptr<server::channel> encrypted_by;  // not null: encrypted, and so is the reply
    /// Signs the reply with this key. Only if the request has proved that its sender knows the key:
    /// see docs/formats/smb2-signing.md. Returns false if the key must not sign a reply with that
    /// id any more: then nothing has changed, and the caller closes the connection.
    [[nodiscard]] bool sign_reply_with(const std::shared_ptr<auth::signer>& by) noexcept;
    [[nodiscard]] bool is_reply_signed() const noexcept { return signs_reply_.has_value(); }
    bool knows_session_key = false;  // it binds a session, whose key has signed it
    bool is_last_of_frame = true;
    bool is_related = false;
    std::size_t frame_bytes = 0;            // size of the frame that it arrived in, and keeps
    bool is_pending = false;                // counted among those of its connection that wait
    quota_hold counted;                     // and among those of its client
    std::uint64_t async_id = 0;             // not zero: an interim reply was sent
    reply_batch* replies_before = nullptr;  // for its frame
    /// The caching that its reply grants: breaks of it wait until the reply is sent.
    std::optional<unsent_grant> grants;
    /// The file whose data the reply has, if the reply is compressed where that is worthwhile.
    std::shared_ptr<open> compressed_for;

private:
    friend class connection;
    friend class cancel_deferral;

    [[nodiscard]] bool comes_in_sequence(const std::shared_ptr<open>& to) noexcept;
    void end_replays(open& of) noexcept;
    replier& replier_;
    server::connection& connection_;  // the same object
    wire::message_view message_;
    compound_state& compound_;
    one_shot_event<wire::nt_status>* waits_for_ = nullptr;
    io::call_cancellation cancellation_;
    std::optional<wire::nt_status> interrupted_;
    bool defers_cancel_ = false;
    bool has_deferred_cancel_ = false;
    std::optional<wire::nt_status> stale_status_;
    std::optional<reply_signer> signs_reply_;
    std::shared_ptr<open> in_sequence_of_;  // where it counts as in flight
    channel_sequence::ticket in_sequence_at_{};

public:
    list_hook<request> link;  // in its connection's list
};

/// A part of a request that a CANCEL does not end, because later requests rely on its effect
/// ([MS-SMB2] 3.3.5.16: the request that cannot be cancelled continues). The CANCEL takes effect at
/// the end of this object. All other interrupts take effect at once, so that a part that waits for
/// a file system that hangs does not delay the end of a session, connection or server. Loop-owned.
class cancel_deferral {
public:
    explicit cancel_deferral(request& of) noexcept : of_(of) {
        ENSURE(not of.defers_cancel_, "a request defers a CANCEL once at a time");
        of.defers_cancel_ = true;
    }
    cancel_deferral(const cancel_deferral&) = delete;
    cancel_deferral& operator=(const cancel_deferral&) = delete;
    ~cancel_deferral() {
        of_.defers_cancel_ = false;
        if (of_.has_deferred_cancel_) of_.interrupt(wire::nt_status::cancelled);
    }

private:
    request& of_;
};

}  // namespace sluice::smb::server
