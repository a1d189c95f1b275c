#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sluice/io/stream/splice.hpp"

namespace sluice::smb::server {

/// Pipes through which files are sent, for one transfer at a time each: as many as transfers are under way,
/// most of which wait for a receiver, but no more than `pipes_max`.
///
/// Thread safety: one thread. Outlives what it has lent. Allocates: amortised; a pipe is two descriptors, and
/// memory of the kernel's while it holds something.
class splice_pipes {
public:
    static constexpr std::size_t pipes_max = 64;

    splice_pipes() noexcept = default;
    splice_pipes(const splice_pipes&) = delete;
    splice_pipes& operator=(const splice_pipes&) = delete;
    ~splice_pipes() { ENSURE(lent_ == 0, "pipes come back before their owner goes"); }

    /// A pipe for as long as this lives; or none, and then the transfer goes without (a seventh slower).
    class loan {
    public:
        explicit loan(splice_pipes& from) noexcept : from_(from), pipe_(from.take()) {}
        loan(const loan&) = delete;
        loan& operator=(const loan&) = delete;
        ~loan() {
            if (pipe_) from_.give_back(*std::move(pipe_));
        }
        /// Null: none.
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
        } else if (lent_ < pipes_max) {
            if (auto made = io::splice_pipe::create()) taken.emplace(*std::move(made));
        }
        if (taken) ++lent_;
        return taken;
    }
    void give_back(io::splice_pipe pipe) noexcept {
        --lent_;
        pipe.discard();  // of a transfer that was cut short
        kept_.push_back(std::move(pipe));
    }

    std::vector<io::splice_pipe> kept_;
    std::size_t lent_ = 0;
};

}  // namespace sluice::smb::server
