#pragma once

#include <cstdint>
#include <string>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"

namespace sluice::smb::server {

/// The memory that a handle journal is in, which outlives the server: a mapped file
/// (journal_file.hpp), or memory of a simulation (journal_memory.hpp). Its address never changes.
/// While it exists, no other storage has the same memory (the fence).
/// Thread safety: bytes() from any thread; one thread at a time calls the others. The contents are
/// for the journal to synchronise.
class journal_storage {
public:
    journal_storage() noexcept = default;
    journal_storage(const journal_storage&) = delete;
    journal_storage& operator=(const journal_storage&) = delete;
    virtual ~journal_storage() = default;

    /// Returns the path for messages, or what the memory is. Allocates: the text.
    [[nodiscard]] virtual std::string name() const = 0;
    /// Returns the bytes that exist. Blocks: never.
    [[nodiscard]] virtual mutable_bytes bytes() const noexcept = 0;
    /// Appends zeros so that there are at least `length` bytes. Errors: ENOSPC, EDQUOT; EFBIG
    /// beyond its bound; EIO. There may be more bytes than before, even then.
    /// Blocks: for the file system.
    [[nodiscard]] virtual result<void> extend(std::uint64_t length) noexcept = 0;
    /// Removes all bytes. No other thread uses any. Errors: EIO. Blocks: for the file system.
    [[nodiscard]] virtual result<void> empty() noexcept = 0;
    /// Keeps a copy of all bytes for an examination by people, in place of an earlier one.
    /// Errors: ENOSPC, EDQUOT, EIO. Blocks: for the file system.
    [[nodiscard]] virtual result<void> copy_aside() noexcept = 0;
};

}  // namespace sluice::smb::server
