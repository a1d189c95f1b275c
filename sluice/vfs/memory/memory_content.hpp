#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>

#include "sluice/io/file/extent_guard.hpp"

namespace sluice::vfs {

/// The bytes of a file in memory, with holes. Pages are counted against a budget that files share.
/// Thread safety: none of its own.
class memory_content {
public:
    static constexpr std::size_t page_bytes = 4096;
    /// The number of pages that may still be allocated.
    struct budget {
        std::uint64_t pages_left = 0;
    };

    explicit memory_content(budget& from) noexcept : budget_(from) {}
    memory_content(const memory_content&) = delete;
    memory_content& operator=(const memory_content&) = delete;
    ~memory_content() { budget_.pages_left += pages_.size(); }

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t allocated_bytes() const noexcept { return pages_.size() * page_bytes; }

    /// Returns the number of copied bytes: fewer only at the end.
    [[nodiscard]] std::size_t read(std::span<std::byte> into, std::uint64_t offset) const noexcept;
    /// Returns false, without a change, if the budget is exhausted. The end must not be beyond
    /// 2^63.
    [[nodiscard]] bool write(std::span<const std::byte> from, std::uint64_t offset);
    void truncate(std::uint64_t size);
    void zero(std::uint64_t offset, std::uint64_t length, bool frees_blocks);
    [[nodiscard]] std::span<io::extent_pair> ranges(std::uint64_t offset, std::uint64_t length,
                                                    std::span<io::extent_pair> storage) const noexcept;

private:
    using page = std::array<std::byte, page_bytes>;

    budget& budget_;
    std::uint64_t size_ = 0;
    std::map<std::uint64_t, std::unique_ptr<page>> pages_;  // a missing page is a hole
};

}  // namespace sluice::vfs
