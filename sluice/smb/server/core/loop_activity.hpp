#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/vfs/domain/inline_call_slot.hpp"

namespace sluice::smb::server {

/// A piece of work on an event loop: a command, and the number of the domain whose file system it
/// may call. See domain_names.
struct loop_work {
    wire::command command = wire::command::negotiate;
    std::uint32_t domain = 0;  // 0: none

    [[nodiscard]] friend constexpr bool operator==(const loop_work&, const loop_work&) noexcept = default;
};

/// The work of one event loop, for its watchdog: "command C in domain D". It is stored when the
/// loop begins or resumes a request, and cleared when a task that serves no request resumes.
///
/// Thread safety (atomic): the loop's thread writes, by means of a `use`; any thread reads. A
/// reader that sees one turn for a while sees what was stored in it: no order is needed.
class loop_activity {
public:
    /// `loop` outlives this.
    explicit loop_activity(const io::io_multiplexer& loop) noexcept : loop_(loop) {}
    loop_activity(const loop_activity&) = delete;
    loop_activity& operator=(const loop_activity&) = delete;

    /// While it exists, the calling thread is the one that runs the loop, and begin() writes to
    /// `of`. No watchdog looks at it any more when the thread ends. A loop has one use at a time.
    /// `thread` is the kernel's number of the thread.
    class use {
    public:
        use(loop_activity& of, int thread) noexcept;
        use(const use&) = delete;
        use& operator=(const use&) = delete;
        ~use();

    private:
        loop_activity& of_;
    };

    /// The loop of this thread begins or resumes `work`; std::nullopt is work that serves no
    /// request. Does nothing on a thread without a `use`.
    static void begin(std::optional<loop_work> work) noexcept {
        if (loop_activity* const here = here_; here != nullptr) here->record(work);
    }
    /// The last work of this thread's loop, to begin() it again after a suspension.
    [[nodiscard]] static std::optional<loop_work> current() noexcept {
        return here_ != nullptr ? unpacked(here_->work_.load(std::memory_order_relaxed)) : std::nullopt;
    }

    struct view {
        std::uint64_t turn = 0;           // io_multiplexer::turn() when it was stored
        std::optional<loop_work> work{};  // none: no request
    };
    [[nodiscard]] view look() const noexcept;
    [[nodiscard]] const io::io_multiplexer& loop() const noexcept { return loop_; }
    /// The file-system call that the loop's thread carries out now; none while there is no `use`.
    [[nodiscard]] vfs::inline_call_slot::running_call call() const noexcept {
        const vfs::inline_call_slot* const calls =
            calls_.load(std::memory_order_acquire);  // pairs with `use`
        return calls == nullptr ? vfs::inline_call_slot::running_call{} : calls->now();
    }
    /// The kernel's number of the loop's thread; 0 while there is no `use`.
    [[nodiscard]] int thread() const noexcept { return thread_.load(std::memory_order_relaxed); }

private:
    void record(std::optional<loop_work> work) noexcept {
        turn_.store(loop_.turn(), std::memory_order_relaxed);
        work_.store(packed(work), std::memory_order_relaxed);
    }
    // One word, so that a reader never sees the command of one request with the domain of another.
    [[nodiscard]] static constexpr std::uint64_t packed(std::optional<loop_work> work) noexcept {
        if (not work) return 0;
        return is_request | std::uint64_t{work->domain} << 16 | static_cast<std::uint16_t>(work->command);
    }
    [[nodiscard]] static constexpr std::optional<loop_work> unpacked(std::uint64_t word) noexcept {
        if ((word & is_request) == 0) return std::nullopt;
        return loop_work{.command = static_cast<wire::command>(word & 0xffff),
                         .domain = static_cast<std::uint32_t>(word >> 16)};
    }
    static constexpr std::uint64_t is_request = std::uint64_t{1} << 63;

    static inline thread_local constinit loop_activity* here_ = nullptr;

    const io::io_multiplexer& loop_;
    std::atomic<int> thread_{0};
    std::atomic<const vfs::inline_call_slot*> calls_{nullptr};
    std::atomic<std::uint64_t> turn_{0};
    std::atomic<std::uint64_t> work_{0};
};

}  // namespace sluice::smb::server
