#pragma once

#include <cstdint>
#include <memory>

#include "sluice/base/buffer_pool.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/file_handle.hpp"

namespace sluice::smb::server {

/// Part of a file. What was cut off the file since counts as zeros: a length that was announced is kept.
struct file_range {
    std::shared_ptr<io::file_handle> file;  // open for as long as anybody needs it; belongs to no loop
    std::uint64_t offset = 0;
    std::size_t length = 0;
};

/// What follows a reply's body: memory, or part of a file, or nothing.
class reply_payload {
public:
    reply_payload() noexcept = default;
    reply_payload(pool_buffer memory) noexcept : memory_(std::move(memory)) {}  // NOLINT: one of two forms
    reply_payload(file_range range) noexcept : range_(std::move(range)) {}      // NOLINT

    [[nodiscard]] explicit operator bool() const noexcept { return memory_ or is_file(); }
    [[nodiscard]] bool is_file() const noexcept { return range_.file != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return is_file() ? range_.length : memory_.size(); }
    /// Of memory: what is signed and encrypted is never a file (read_path.hpp).
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        ENSURE(not is_file(), "a file is in nobody's memory");
        return memory_.bytes();
    }
    [[nodiscard]] pool_buffer& memory() noexcept { return memory_; }
    [[nodiscard]] file_range& range() noexcept { return range_; }

private:
    pool_buffer memory_;
    file_range range_;
};

}  // namespace sluice::smb::server
