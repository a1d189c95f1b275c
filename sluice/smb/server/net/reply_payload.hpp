#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/base/buffer_pool.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/vfs/host_runs.hpp"

namespace sluice::smb::server {

/// Part of a file. If the file was truncated since, the rest is zeros, so that an announced length
/// is kept.
struct file_range {
    std::shared_ptr<io::file_handle> file;  // open while it is in use; belongs to no loop
    std::shared_ptr<const void> kept;       // vfs::host_runs has it: until its
                                            // pages have been taken
    std::uint64_t offset = 0;
    std::size_t length = 0;
};

/// The payload after a reply's body: memory, or pieces of a file of the host, or empty.
class reply_payload {
public:
    /// Pieces of `file`, which is not null, in order; a piece without a place in the file is zeros.
    struct file_pieces {
        std::shared_ptr<io::file_handle> file;
        std::shared_ptr<const void> kept;
        std::vector<vfs::host_run> runs;
    };

    reply_payload() noexcept = default;
    reply_payload(pool_buffer memory) noexcept : memory_(std::move(memory)) {}  // NOLINT: converts
    reply_payload(file_pieces pieces) noexcept : pieces_(std::move(pieces)) {   // NOLINT
        for (const vfs::host_run& each : pieces_.runs)
            file_bytes_ += each.length;
    }

    [[nodiscard]] explicit operator bool() const noexcept { return memory_ or is_file(); }
    [[nodiscard]] bool is_file() const noexcept { return pieces_.file != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return is_file() ? file_bytes_ : memory_.size(); }
    /// Returns the bytes in memory: a signed or encrypted payload is never a file (read_path.hpp).
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        ENSURE(not is_file(), "a payload in a file has no bytes in memory");
        return memory_.bytes();
    }
    [[nodiscard]] pool_buffer& memory() noexcept { return memory_; }
    [[nodiscard]] const file_pieces& pieces() const noexcept { return pieces_; }

private:
    pool_buffer memory_;
    file_pieces pieces_;
    std::size_t file_bytes_ = 0;
};

}  // namespace sluice::smb::server
