#pragma once

#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/node_data.hpp"

// Internal to the host volume: transfers of a file of the host, and where they run.

namespace sluice::vfs {

/// A file, which is null if it is not open for the transfer, and the volume and domain in whose
/// calls it is used. All outlive the transfer.
struct transferred_file {
    host_tree& tree;
    fs_domain& domain;
    io::file_handle* file;
};

/// Reads as node_data::co_read: the cached part at once, the rest on the ring or on a worker.
/// Errors: EBADF without a file.
[[nodiscard]] io::task<result<std::size_t>> co_read_file(transferred_file from, std::span<std::byte> into,
                                                         std::uint64_t offset,
                                                         io::call_cancellation* by) noexcept;

/// Reads as much as there is. Errors: those of the file. Blocks: for the device.
[[nodiscard]] result<std::size_t> read_waiting(io::file_handle& file, std::span<std::byte> into,
                                               std::uint64_t offset) noexcept;
/// Writes everything. Errors: EBADF without a file; those of the file; EIO if it takes nothing.
/// Blocks: for the device.
[[nodiscard]] result<void> write_waiting(io::file_handle* file, std::span<const std::byte> from,
                                         std::uint64_t offset) noexcept;

/// Carries out a call that writes `bytes` bytes, on the loop if such writes are prompt, otherwise
/// on a worker. Lifetime: the objects that the call refers to outlive the task. Suspends.
template <std::invocable Call>
[[nodiscard]] io::task<result<void>> co_write_by(host_tree& tree, fs_domain& domain, std::size_t bytes,
                                                 io::call_cancellation* by, Call call) noexcept {
    const auto began = buffered_write_hint::clock::now();
    if (domain.is_inline() and tree.writes.is_prompt(began)) {
        const fs_domain::inline_call now(domain);
        const result<void> written = call();
        tree.writes.record(began, buffered_write_hint::clock::now(), bytes);
        co_return written;
    }
    co_return co_await domain.offload(tree.multiplexer_here(), by, std::move(call));
}

// --- calls for ranges of an open file, as those of node_data

[[nodiscard]] result<void> reserve_file(io::file_handle& file, std::uint64_t size_bytes) noexcept;
[[nodiscard]] result<void> zero_file(io::file_handle& file, std::uint64_t offset, std::uint64_t length,
                                     bool frees_blocks) noexcept;
[[nodiscard]] result<std::span<io::extent_pair>> ranges_of_file(const io::file_handle& file,
                                                                std::uint64_t offset, std::uint64_t length,
                                                                std::span<io::extent_pair> storage) noexcept;
[[nodiscard]] result<std::uint64_t> clone_file(const io::file_handle& from, io::file_handle& to,
                                               io::extent_pair source, std::uint64_t destination_offset,
                                               bool only_shared) noexcept;

}  // namespace sluice::vfs
