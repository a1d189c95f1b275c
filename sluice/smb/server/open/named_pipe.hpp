#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/server/core/event.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// A named pipe of IPC$, served by this program itself: what is written is a request, what can be read is its
/// answer, which is there when the write returns.
/// Thread safety: under the server's latch.
class named_pipe {
public:
    virtual ~named_pipe() = default;
    named_pipe(const named_pipe&) = delete;
    named_pipe& operator=(const named_pipe&) = delete;

    /// Takes what a client wrote, and wakes who waits for an answer. False: the bytes are not what this pipe
    /// understands, and it is broken from here on.
    [[nodiscard]] bool write(bytes_view request) noexcept;
    /// Moves up to `into.size()` bytes of the first answer out. `more` tells that it has more.
    struct read_outcome {
        std::size_t bytes = 0;
        bool more = false;
    };
    [[nodiscard]] virtual read_outcome read(mutable_bytes into) noexcept = 0;
    [[nodiscard]] bool has_answer() const noexcept { return readable_bytes() != 0; }
    /// Of all answers.
    [[nodiscard]] virtual std::size_t readable_bytes() const noexcept = 0;

    /// Has `answered` set to success with the next answer, to PIPE_BROKEN when none can come any more. It
    /// lives until forget().
    void wait(event<wire::nt_status>& answered);
    void forget(event<wire::nt_status>& answered) noexcept;
    /// Its open was closed: nobody gets an answer any more.
    void end() noexcept { wake(wire::nt_status::pipe_broken); }

protected:
    named_pipe() = default;
    [[nodiscard]] virtual bool take(bytes_view request) noexcept = 0;

private:
    void wake(wire::nt_status with) noexcept;

    std::vector<event<wire::nt_status>*> waiting_;
};

}  // namespace sluice::smb::server
