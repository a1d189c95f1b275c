#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/file_status.hpp"

namespace sluice::cli {

/// Bytes of a file of the host. The last block of a file may be empty, and has its
/// time of modification.
struct host_block {
    std::vector<std::byte> bytes{};  // at most 1 MiB
    std::uint64_t offset = 0;
    std::uint64_t file_bytes = 0;  // size of the file, when it was opened
    io::file_status::time_point modified{};
    bool is_last = false;
    std::optional<error> problem{};  // then it is the last
};

/// Reads files of the host in a given order, on its own thread, up to 8 MiB ahead of the program
/// that takes their blocks.
///
/// Thread safety: one thread takes blocks.
class host_reader {
public:
    /// Starts to read. If no thread can be started, next() reads. Allocates: up to 8 MiB.
    explicit host_reader(std::vector<std::filesystem::path> files);
    host_reader(const host_reader&) = delete;
    host_reader& operator=(const host_reader&) = delete;
    /// Waits at most for the block that is being read.
    ~host_reader();

    /// Returns the next block: all blocks of the first file, then those of the second, and so on.
    /// Do not call it after the last block. Blocks: until the block has been read.
    [[nodiscard]] host_block next();

private:
    void read_all();
    [[nodiscard]] host_block read_block();
    [[nodiscard]] bool has_room() const noexcept;

    std::vector<std::filesystem::path> files_;
    std::size_t present_ = 0;  // of files_; this and the next two: the thread that reads
    io::file_handle open_;
    std::uint64_t offset_ = 0;

    std::mutex mutex_;  // protects the members below
    std::condition_variable changed_;
    std::deque<host_block> blocks_;
    std::uint64_t bytes_ = 0;  // in blocks_
    bool is_ended_ = false;    // no further block is taken
    std::jthread thread_;      // joined first
};

}  // namespace sluice::cli
