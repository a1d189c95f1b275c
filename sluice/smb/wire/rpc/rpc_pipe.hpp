#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"
#include "sluice/smb/wire/rpc/rpc_service.hpp"

namespace sluice::smb::wire {

/// The limits of one open of a pipe.
struct rpc_limits {
    std::size_t arguments_bytes_max = 64 * 1024;     ///< limit of one call, over all its fragments
    std::size_t results_bytes_max = 1024 * 1024;     ///< limit of one call
    std::size_t calls_per_write_max = 16;            ///< clients send one; each takes time
    std::size_t unread_bytes_max = 2 * 1024 * 1024;  ///< limit of the replies that
                                                     ///< the client has not read
};

/// The server's end of one open of a service's pipe: DCE/RPC over a message pipe, [MS-RPCE]. It
/// consumes and produces bytes and performs no I/O. NDR is the only transfer syntax. Windows also
/// proposes NDR64 and feature negotiation; these are rejected according to [MS-RPCE] 3.3.1.5.3, and
/// clients continue with NDR. The pipe has no authentication, because the session is authenticated.
/// Allocates, within the limits. `host` outlives the pipe. Thread safety: none of its own.
class rpc_pipe {
public:
    rpc_pipe(rpc_service service, rpc_host& host, rpc_limits limits = {}) noexcept
        : service_(service), host_(host), limits_(limits) {}

    /// Processes bytes that the client wrote: fragments, possibly incomplete. Returns false if they
    /// violate the protocol or a limit. The pipe is then disconnected (STATUS_PIPE_DISCONNECTED),
    /// as by disconnect().
    [[nodiscard]] bool write(bytes_view bytes);

    /// Fills `room` from the oldest reply. A message is a fragment. `more`: room was too small and
    /// the rest of the message follows (STATUS_BUFFER_OVERFLOW). Returns no bytes if there is
    /// nothing to read.
    struct read_result {
        std::size_t bytes = 0;
        bool more = false;
    };
    [[nodiscard]] read_result read(mutable_bytes room) noexcept;

    [[nodiscard]] std::size_t readable_bytes() const noexcept { return out_.size() - read_; }
    /// Drops all that the pipe keeps. It accepts no more bytes, and returns none.
    void disconnect() noexcept;
    /// Returns the memory of the fragments and replies that it keeps.
    [[nodiscard]] std::size_t kept_bytes() const noexcept {
        return in_.capacity() + arguments_.capacity() + out_.capacity();
    }
    [[nodiscard]] bool broken() const noexcept { return broken_; }

private:
    bool take_fragments();
    bool take_fragment(const rpc_head& head, bytes_view body);
    bool take_bind(const rpc_head& head, bytes_view body);
    bool take_request(const rpc_head& head, bytes_view body);
    void answer_call(std::uint32_t call);
    rpc_fault execute(const rpc_call& call, ndr_writer& results);
    void refuse_call(std::uint32_t call, rpc_fault why);
    void drop_read() noexcept;
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
    std::vector<std::byte> out_;   // complete fragments
    std::size_t read_ = 0;         // number of bytes of out_ that were read
    std::size_t message_end_ = 0;  // end of the fragment that is being read; equals
                                   // read_ if there is none
    bool broken_ = false;
};

}  // namespace sluice::smb::wire
