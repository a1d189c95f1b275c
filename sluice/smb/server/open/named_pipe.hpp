#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// Work that a request on a pipe has asked for: it ends sessions or opens, that of the pipe among
/// them.
using pipe_work = std::move_only_function<void() noexcept>;

/// A named pipe of IPC$, served by this program itself. A write is a request; the reply can be read
/// as soon as the write returns.
/// Monitor: any thread; `mutex_` guards the answers and their readers, and the functions that a
/// pipe of a kind defines run under it: they may lock any other mutex, and post nothing. Allocates:
/// as these do, and a pointer per waiter.
class named_pipe {
public:
    virtual ~named_pipe() = default;
    named_pipe(const named_pipe&) = delete;
    named_pipe& operator=(const named_pipe&) = delete;

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
    // The work of the public functions, under the mutex.
    [[nodiscard]] virtual bool take(bytes_view request) noexcept = 0;
    [[nodiscard]] virtual read_outcome read_answer(mutable_bytes into) noexcept = 0;
    [[nodiscard]] virtual std::size_t answer_bytes() const noexcept = 0;
    /// Returns the work that the requests since the last call have asked for. It is done without
    /// the mutex, on the thread of the request, before that gets its status.
    [[nodiscard]] virtual std::vector<pipe_work> take_work() noexcept { return {}; }

private:
    // Nothing while a reader has to wait.
    [[nodiscard]] std::optional<wire::nt_status> outcome() const noexcept SLUICE_REQUIRES(mutex_);
    [[nodiscard]] bool process(bytes_view request) noexcept SLUICE_REQUIRES(mutex_);
    [[nodiscard]] transceive_outcome transceive_held(bytes_view request, mutable_bytes into,
                                                     event_wakes<wire::nt_status>& woken) noexcept
        SLUICE_REQUIRES(mutex_);
    void wake(event_wakes<wire::nt_status>& woken) noexcept SLUICE_REQUIRES(mutex_);

    mutable ranked_mutex<lock_rank::pipe> mutex_;
    std::vector<one_shot_event<wire::nt_status>*> waiting_ SLUICE_GUARDED_BY(mutex_);
    bool is_broken_ SLUICE_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::smb::server
