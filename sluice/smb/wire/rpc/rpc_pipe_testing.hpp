#pragma once

#include "sluice/smb/wire/rpc/rpc_pipe.hpp"
#include "sluice/smb/wire/rpc/rpc_replies.hpp"

// A pipe for tests and fuzz targets.

namespace sluice::smb::wire::rpc_testing {

/// A pipe together with the replies that its client has not read, as a server keeps them.
class whole_pipe {
public:
    whole_pipe(rpc_service service, rpc_host& host, rpc_limits limits = {}) : pipe_(service, host, limits) {}

    [[nodiscard]] bool write(bytes_view bytes) {
        const bool is_taken = pipe_.write(bytes, replies_.readable_bytes());
        replies_.append(pipe_.take_replies());
        if (not is_taken) replies_.clear();
        return is_taken;
    }
    [[nodiscard]] rpc_replies::read_result read(mutable_bytes room) noexcept { return replies_.read(room); }
    [[nodiscard]] std::size_t readable_bytes() const noexcept { return replies_.readable_bytes(); }
    [[nodiscard]] std::size_t kept_bytes() const noexcept {
        return pipe_.kept_bytes() + replies_.kept_bytes();
    }
    [[nodiscard]] bool broken() const noexcept { return pipe_.broken(); }

private:
    rpc_pipe pipe_;
    rpc_replies replies_;
};

}  // namespace sluice::smb::wire::rpc_testing
