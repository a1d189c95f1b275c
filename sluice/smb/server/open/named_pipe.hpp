#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// Work that a request on a pipe has asked for: it ends one session or open, perhaps that of the
/// pipe. Returns the number of sessions and opens that have ended.
using pipe_work = std::move_only_function<std::size_t() noexcept>;

/// A named pipe of IPC$, served by this program itself. A write is a request; the reply can be read
/// as soon as the write returns.
///
/// Invariant: requests are processed one after the other, in the order in which they take
/// `requests` (net/pipe_turn.hpp), without a mutex: they may look at everything, and determine the
/// paths of files, and no other loop waits for them.
/// Monitor: any thread; `mutex_` guards the answers and their readers. The holder of `requests`
/// owns the rest. Allocates: as the pipes of a kind do, and a pointer per waiter.
class named_pipe {
public:
    virtual ~named_pipe() = default;
    named_pipe(const named_pipe&) = delete;
    named_pipe& operator=(const named_pipe&) = delete;

    /// The caller of write(), transceive() and take_work() holds it, exclusively.
    fifo_lock requests;

    /// Processes a client's write, and wakes the readers that wait for a reply. Returns false if
    /// the bytes are invalid for this pipe, which is broken from then on.
    [[nodiscard]] bool write(bytes_view request) noexcept;
    /// Moves up to `into.size()` bytes of the first answer out. `more` tells that it has more.
    struct read_outcome {
        std::size_t bytes = 0;
        bool more = false;
    };
    [[nodiscard]] read_outcome read(mutable_bytes into) noexcept;
    /// Processes a request, and moves up to `into.size()` bytes of its answer out, before any
    /// reader gets that. Returns success; or BUFFER_OVERFLOW if the answer has more, which readers
    /// get; PIPE_BUSY if an earlier answer has not been read; PIPE_DISCONNECTED if the bytes are
    /// invalid for this pipe, which is broken from then on; INVALID_PIPE_STATE if they are a part
    /// of a request, which write() continues.
    struct transceive_outcome {
        wire::nt_status status = wire::nt_status::success;
        std::size_t bytes = 0;
    };
    [[nodiscard]] transceive_outcome transceive(bytes_view request, mutable_bytes into) noexcept;
    /// Returns the work that the requests since the last call have asked for.
    [[nodiscard]] virtual std::vector<pipe_work> take_work() noexcept { return {}; }

    [[nodiscard]] bool has_answer() const noexcept { return readable_bytes() != 0; }
    /// Returns the size of all replies.
    [[nodiscard]] std::size_t readable_bytes() const noexcept;

    /// Has `answered` set to success with the next answer, at once if there is one; to PIPE_BROKEN
    /// when none can come any more. It lives until forget().
    void wait(one_shot_event<wire::nt_status>& answered);
    void forget(one_shot_event<wire::nt_status>& answered) noexcept;
    /// Its open was closed: wakes all readers, and no reply is returned any more.
    void end() noexcept;

protected:
    named_pipe() = default;
    /// Processes a request, without the mutex. `unread_bytes`: the size of the answers that were
    /// not read. Returns false if the bytes are invalid.
    [[nodiscard]] virtual bool process(bytes_view request, std::size_t unread_bytes) noexcept = 0;
    // The rest runs under the mutex, locks only mutexes of clients, and posts nothing.
    /// Adds the answers of process(), which has returned `is_valid`, to those that can be read.
    /// Returns false, and drops all answers, if it is false, or there is no room.
    [[nodiscard]] virtual bool publish(bool is_valid) noexcept = 0;
    [[nodiscard]] virtual read_outcome read_answer(mutable_bytes into) noexcept = 0;
    [[nodiscard]] virtual std::size_t answer_bytes() const noexcept = 0;

private:
    // Nothing while a reader has to wait.
    [[nodiscard]] std::optional<wire::nt_status> outcome() const noexcept SLUICE_REQUIRES(mutex_);
    [[nodiscard]] bool finish(bool is_valid) noexcept SLUICE_REQUIRES(mutex_);
    [[nodiscard]] read_outcome read_held(mutable_bytes into) noexcept SLUICE_REQUIRES(mutex_);
    void wake(event_wakes<wire::nt_status>& woken) noexcept SLUICE_REQUIRES(mutex_);

    mutable ranked_mutex<lock_rank::pipe> mutex_;
    std::vector<one_shot_event<wire::nt_status>*> waiting_ SLUICE_GUARDED_BY(mutex_);
    bool is_broken_ SLUICE_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::smb::server
