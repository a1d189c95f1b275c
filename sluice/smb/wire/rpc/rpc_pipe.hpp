#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"
#include "sluice/smb/wire/rpc/rpc_service.hpp"

namespace sluice::smb::wire {

/// What one open of a pipe may hold.
struct rpc_limits {
    std::size_t arguments_bytes_max = 64 * 1024;     ///< of one call, over all its fragments
    std::size_t results_bytes_max = 1024 * 1024;     ///< of one call
    std::size_t unread_bytes_max = 2 * 1024 * 1024;  ///< replies the client has not read
};

/// The server's end of one open of srvsvc or wkssvc: DCE/RPC over a pipe of messages, [MS-RPCE]. Bytes go in,
/// bytes come out; no i/o. NDR is the one transfer syntax; NDR64 and the negotiation of features, which
/// Windows proposes besides, are refused as [MS-RPCE] 3.3.1.5.3 has it, and clients go on with NDR. There is
/// no authentication in the pipe: that of the session counts. Allocates, within the limits. `host` outlives
/// the pipe. Thread safety: none of its own.
class rpc_pipe {
public:
    rpc_pipe(rpc_service service, const rpc_host& host, rpc_limits limits = {}) noexcept
        : service_(service), host_(host), limits_(limits) {}

    /// Takes what the client wrote: fragments, also in pieces. False if it breaks the protocol or a limit;
    /// the pipe is then disconnected (STATUS_PIPE_DISCONNECTED) and takes nothing more.
    [[nodiscard]] bool write(bytes_view bytes);

    /// Fills `room` from the oldest reply. A message is a fragment: `more` means room was too small for the
    /// rest of it (STATUS_BUFFER_OVERFLOW), which comes next. No bytes if there is nothing to read.
    struct read_result {
        std::size_t bytes = 0;
        bool more = false;
    };
    [[nodiscard]] read_result read(mutable_bytes room) noexcept;

    [[nodiscard]] std::size_t readable_bytes() const noexcept { return out_.size() - read_; }
    [[nodiscard]] bool broken() const noexcept { return broken_; }

private:
    bool take_fragment(const rpc_head& head, bytes_view body);
    bool take_bind(const rpc_head& head, bytes_view body);
    bool take_request(const rpc_head& head, bytes_view body);
    void answer_call(std::uint32_t call);
    void refuse_call(std::uint32_t call, rpc_fault why);
    bool has_context(std::uint16_t id) const noexcept;

    rpc_service service_;
    const rpc_host& host_;
    rpc_limits limits_;
    std::size_t fragment_bytes_max_ = rpc_fragment_bytes_least;
    std::vector<std::uint16_t> contexts_;  // accepted, at most rpc_contexts_max
    std::vector<std::byte> in_;            // of a fragment that is not whole yet
    std::vector<std::byte> arguments_;     // of a call whose last fragment is not there yet
    bool in_call_ = false;
    rpc_head call_head_{};  // of its first fragment
    std::uint16_t call_context_ = 0;
    std::uint16_t operation_ = 0;
    std::vector<std::byte> out_;   // whole fragments
    std::size_t read_ = 0;         // of out_
    std::size_t message_end_ = 0;  // of the fragment being read; read_ if none is
    bool broken_ = false;
};

}  // namespace sluice::smb::wire
