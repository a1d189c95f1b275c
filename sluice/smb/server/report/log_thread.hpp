#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/base/mutex.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::smb::server {

/// A log that a thread of its own writes to another log, so that a slow disk or pipe does
/// not block the loops.
///
/// At most `bytes_max` wait in the queue. An event that does not fit is counted, and the next line
/// that the thread writes has their number. Events are written in the order of their write().
///
/// Invariants: `written_` and `reported_` follow `queued_` and `dropped_`, and reach them before
/// the thread ends. Monitor: write() and flush() any thread; `to` is called by the log thread only.
/// Allocates: both buffers of the queue, at construction. Blocks: write(), for as long as another
/// thread copies an event; flush() and the destructor, until all queued events have been written.
class log_thread final : public event_log {
public:
    static constexpr std::size_t bytes_max = std::size_t{256} << 10;
    /// The fields of an event beyond these are not logged.
    static constexpr std::size_t fields_max = 16;

    /// `to` outlives this. Events that are less severe than `least` are not queued.
    explicit log_thread(event_log& to, event_severity least = event_severity::detail);
    log_thread(const log_thread&) = delete;
    log_thread& operator=(const log_thread&) = delete;
    ~log_thread();

    void write(event_severity severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override;
    /// Waits until all events that were queued before have been written. Returns false if that
    /// takes longer than `at_most`.
    [[nodiscard]] bool flush(std::chrono::milliseconds at_most);
    /// Returns how many events did not fit, from the beginning on.
    [[nodiscard]] std::uint64_t dropped() const;

private:
    using buffer = std::vector<char>;

    void run();
    void write_all(const buffer& events);

    event_log& to_;
    const event_severity least_;
    mutable mutex mutex_;
    std::condition_variable_any has_work_;
    std::condition_variable_any has_written_;
    buffer queue_ SLUICE_GUARDED_BY(mutex_);
    std::uint64_t dropped_ SLUICE_GUARDED_BY(mutex_) = 0;
    std::uint64_t reported_ SLUICE_GUARDED_BY(mutex_) = 0;  // of those
    std::uint64_t queued_ SLUICE_GUARDED_BY(mutex_) = 0;    // events, from the beginning on
    std::uint64_t written_ SLUICE_GUARDED_BY(mutex_) = 0;   // of those
    bool stops_ SLUICE_GUARDED_BY(mutex_) = false;
    std::thread thread_;  // last: it uses all the others
};

}  // namespace sluice::smb::server
