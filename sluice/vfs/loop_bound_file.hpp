#pragma once

#include <span>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

// Internal to the volumes: their files and the loops that use them.

namespace sluice::vfs {

/// Returns the loop of the calling thread, one of `loops`, which is not empty. If no thread owns a
/// loop yet, returns the first.
[[nodiscard]] io::io_multiplexer& loop_here(std::span<io::io_multiplexer* const> loops) noexcept;

/// A file for one transfer: the file itself, if it belongs to a loop; otherwise its descriptor,
/// bound to a loop for the duration of the transfer.
class loop_bound_file {
public:
    loop_bound_file(io::file_handle& file, io::io_multiplexer& loop) noexcept
        : file_(file), attached_(attach(file, loop)) {}
    loop_bound_file(const loop_bound_file&) = delete;
    loop_bound_file& operator=(const loop_bound_file&) = delete;
    ~loop_bound_file() { (void)bound_.release(); }

    [[nodiscard]] const result<void>& attached() const noexcept { return attached_; }
    [[nodiscard]] io::file_handle& file() noexcept { return bound_.is_valid() ? bound_ : file_; }

private:
    [[nodiscard]] result<void> attach(io::file_handle& file, io::io_multiplexer& loop) noexcept {
        if (file.multiplexer() != nullptr) return {};
        bound_ = io::file_handle(file.native());
        return bound_.set_multiplexer(&loop);
    }

    io::file_handle& file_;
    io::file_handle bound_;
    result<void> attached_;
};

}  // namespace sluice::vfs
