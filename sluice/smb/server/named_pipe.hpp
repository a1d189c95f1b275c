#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::server {

class smb_server;

/// A named pipe of IPC$, served by this program itself: what is written is a request, what can be read is its
/// answer. Nothing waits: the answer is there when the write returns.
/// Thread safety: the loop's thread.
class named_pipe {
public:
    virtual ~named_pipe() = default;
    named_pipe(const named_pipe&) = delete;
    named_pipe& operator=(const named_pipe&) = delete;

    /// False: the bytes are not what this pipe understands, and it is broken from here on.
    [[nodiscard]] virtual bool write(bytes_view request) noexcept = 0;
    /// Moves up to `into.size()` bytes of the first answer out. `more` tells that it has more.
    struct read_outcome {
        std::size_t bytes = 0;
        bool more = false;
    };
    [[nodiscard]] virtual read_outcome read(mutable_bytes into) noexcept = 0;
    [[nodiscard]] virtual bool has_answer() const noexcept = 0;

protected:
    named_pipe() = default;
};

/// The pipe of that name ("srvsvc", "wkssvc"); null if there is none.
[[nodiscard]] std::unique_ptr<named_pipe> make_named_pipe(smb_server& host, std::string_view name);

}  // namespace sluice::smb::server
