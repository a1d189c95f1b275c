#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "sluice/smb/server/journal/journal_storage.hpp"

namespace sluice::smb::server {

/// The memory of a journal in a simulation. It outlives the journals, one after the other, that
/// use it: to simulate the end of a process, freeze() the journal, end the server in any way, and
/// open another journal with a new storage(). Nothing excludes two journals at the same time.
/// Allocates: `bytes_max` of address space. Thread safety: as journal_storage.
class journal_memory {
public:
    explicit journal_memory(std::size_t bytes_max)
        : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes_max)), bytes_max_(bytes_max) {}

    /// Returns a storage in this memory, which must outlive it. Allocates: it.
    [[nodiscard]] std::unique_ptr<journal_storage> storage() { return std::make_unique<view>(*this); }

    /// Return the present bytes, for tests that damage them; a copy from before a copy_aside().
    [[nodiscard]] mutable_bytes bytes() noexcept {
        return {memory_.get(), length_.load(std::memory_order_acquire)};
    }
    [[nodiscard]] const std::vector<std::byte>& aside() const noexcept { return aside_; }
    /// From now on, there are no more than `bytes`: the file system is full.
    void limit(std::size_t bytes) noexcept { bytes_max_ = std::min(bytes_max_, bytes); }
    void resize(std::size_t bytes) noexcept {
        ENSURE(bytes <= bytes_max_);
        const std::size_t before = length_.load(std::memory_order_relaxed);
        if (bytes > before) std::memset(memory_.get() + before, 0, bytes - before);
        length_.store(bytes, std::memory_order_release);  // pairs with bytes()
    }

private:
    class view final : public journal_storage {
    public:
        explicit view(journal_memory& of) noexcept : of_(of) {}
        [[nodiscard]] std::string name() const override { return "memory"; }
        [[nodiscard]] mutable_bytes bytes() const noexcept override { return of_.bytes(); }
        [[nodiscard]] result<void> extend(std::uint64_t length) noexcept override {
            if (length > of_.bytes_max_) return failure({ENOSPC, "extend a journal"});
            if (length > of_.bytes().size()) of_.resize(length);
            return {};
        }
        [[nodiscard]] result<void> empty() noexcept override {
            of_.resize(0);
            return {};
        }
        [[nodiscard]] result<void> copy_aside() noexcept override {
            of_.aside_.assign(of_.bytes().begin(), of_.bytes().end());
            return {};
        }

    private:
        journal_memory& of_;
    };

    std::unique_ptr<std::byte[]> memory_;
    std::size_t bytes_max_;
    std::atomic<std::size_t> length_ = 0;
    std::vector<std::byte> aside_;
};

}  // namespace sluice::smb::server
