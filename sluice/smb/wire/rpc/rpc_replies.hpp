#pragma once

#include <cstddef>
#include <vector>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::wire {

/// The replies of a pipe that its client has not read: complete fragments, each of which is a
/// message. Allocates: their bytes. Thread safety: none of its own.
class rpc_replies {
public:
    /// Appends complete fragments.
    void append(std::vector<std::byte>&& fragments);

    /// Fills `room` from the oldest fragment. `more`: room was too small and the rest of the
    /// message follows (STATUS_BUFFER_OVERFLOW). Returns no bytes if there is nothing to read.
    struct read_result {
        std::size_t bytes = 0;
        bool more = false;
    };
    [[nodiscard]] read_result read(mutable_bytes room) noexcept;

    [[nodiscard]] std::size_t readable_bytes() const noexcept { return bytes_.size() - read_; }
    /// Returns the memory of the replies.
    [[nodiscard]] std::size_t kept_bytes() const noexcept { return bytes_.capacity(); }
    /// Drops all of them.
    void clear() noexcept;

private:
    void drop_read() noexcept;

    std::vector<std::byte> bytes_;  // complete fragments
    std::size_t read_ = 0;          // number of these bytes that were read
    std::size_t message_end_ = 0;   // end of the fragment that is being read; equals
                                    // read_ if there is none
};

}  // namespace sluice::smb::wire
