#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sluice/io/stream/splice.hpp"

namespace sluice::smb::server {

/// Pipes through which files are sent, one transfer at a time each: as many as there are transfers
/// in progress, most of which wait for a receiver, but no more than `pipes_max`.
///
/// Thread safety: one thread. Outlives the pipes in use. Allocates: amortised; a pipe is two
/// descriptors, and memory of the kernel's while it holds something.
class splice_pipes {
public:
    static constexpr std::size_t pipes_max = 64;

    splice_pipes() noexcept = default;
    splice_pipes(const splice_pipes&) = delete;
    splice_pipes& operator=(const splice_pipes&) = delete;
    ~splice_pipes() { ENSURE(in_use_ == 0, "pipes are returned before their owner is destroyed"); }

    /// Holds a pipe while it exists; or none, and then the transfer is made without one (a seventh
    /// slower).
    class extent_pin {
    public:
        explicit extent_pin(splice_pipes& from) noexcept : from_(from), pipe_(from.take()) {}
        extent_pin(const extent_pin&) = delete;
        extent_pin& operator=(const extent_pin&) = delete;
        ~extent_pin() {
            if (pipe_) from_.release(*std::move(pipe_));
        }
        /// Returns null if there is none.
        [[nodiscard]] io::splice_pipe* pipe() noexcept { return pipe_ ? &*pipe_ : nullptr; }

    private:
        splice_pipes& from_;
        std::optional<io::splice_pipe> pipe_;
    };

private:
    [[nodiscard]] std::optional<io::splice_pipe> take() noexcept {
        std::optional<io::splice_pipe> taken;
        if (not kept_.empty()) {
            taken.emplace(std::move(kept_.back()));
            kept_.pop_back();
        } else if (in_use_ < pipes_max) {
            if (auto made = io::splice_pipe::create()) taken.emplace(*std::move(made));
        }
        if (taken) ++in_use_;
        return taken;
    }
    void release(io::splice_pipe pipe) noexcept {
        --in_use_;
        pipe.discard();  // its transfer may have been cut short
        kept_.push_back(std::move(pipe));
    }

    std::vector<io::splice_pipe> kept_;
    std::size_t in_use_ = 0;
};

}  // namespace sluice::smb::server
