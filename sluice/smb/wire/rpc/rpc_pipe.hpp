#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"
#include "sluice/smb/wire/rpc/rpc_service.hpp"

namespace sluice::smb::wire {

/// The limits of one open of a pipe.
struct rpc_limits {
    std::size_t arguments_bytes_max = 64 * 1024;     ///< limit of one call, over all its fragments
    std::size_t results_bytes_max = 1024 * 1024;     ///< limit of one call
    std::size_t calls_per_write_max = 1;             ///< as clients send; each takes time
    std::size_t unread_bytes_max = 2 * 1024 * 1024;  ///< limit of the replies that
                                                     ///< the client has not read
};

/// The server's end of one open of a service's pipe: DCE/RPC over a message pipe, [MS-RPCE]. It
/// consumes requests, produces replies, which the caller keeps until the client reads them
/// (rpc_replies), and performs no I/O. NDR is the only transfer syntax. Windows also
/// proposes NDR64 and feature negotiation; these are rejected according to [MS-RPCE] 3.3.1.5.3, and
/// clients continue with NDR. The pipe has no authentication, because the session is authenticated.
/// Allocates, within the limits. `host` outlives the pipe. Thread safety: none of its own.
class rpc_pipe {
public:
    rpc_pipe(rpc_service service, rpc_host& host, rpc_limits limits = {}) noexcept
        : service_(service), host_(host), limits_(limits) {}

    /// Processes bytes that the client wrote: fragments, possibly incomplete. `unread_bytes`: the
    /// size of the replies that the client has not read. Returns false if the bytes violate the
    /// protocol or a limit. The pipe is then disconnected (STATUS_PIPE_DISCONNECTED), as by
    /// disconnect().
    [[nodiscard]] bool write(bytes_view bytes, std::size_t unread_bytes);
    /// Returns the replies since the last call: complete fragments, each of which is a message.
    [[nodiscard]] std::vector<std::byte> take_replies() noexcept { return std::exchange(out_, {}); }

    /// Drops all that the pipe keeps. It accepts no more bytes.
    void disconnect() noexcept;
    /// Returns the memory of all that it keeps: a fragment, arguments, replies that were not taken,
    /// and the objects that the client has open.
    [[nodiscard]] std::size_t kept_bytes() const noexcept {
        return in_.capacity() + arguments_.capacity() + out_.capacity() + handles_.kept_bytes() +
               contexts_.capacity() * sizeof(std::uint16_t);
    }
    [[nodiscard]] bool broken() const noexcept { return broken_; }

private:
    bool take_fragments(std::size_t unread_bytes);
    bool take_fragment(const rpc_head& head, bytes_view body);
    bool take_bind(const rpc_head& head, bytes_view body);
    bool take_request(const rpc_head& head, bytes_view body);
    void answer_call(std::uint32_t call);
    rpc_fault execute(const rpc_call& call, ndr_writer& results);
    void refuse_call(std::uint32_t call, rpc_fault why);
    bool has_context(std::uint16_t id) const noexcept;

    rpc_service service_;
    rpc_host& host_;
    rpc_limits limits_;
    rpc_handle_table handles_;
    std::size_t fragment_bytes_max_ = rpc_fragment_bytes_least;
    std::vector<std::uint16_t> contexts_;  // accepted, at most rpc_contexts_max
    std::vector<std::byte> in_;            // at most one fragment
    std::vector<std::byte> arguments_;     // arguments of a call that is not complete
    bool in_call_ = false;
    std::size_t calls_of_write_ = 0;
    rpc_head call_head_{};  // header of the call's first fragment
    std::uint16_t call_context_ = 0;
    std::uint16_t operation_ = 0;
    std::vector<std::byte> out_;  // complete fragments
    bool broken_ = false;
};

}  // namespace sluice::smb::wire
