#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::server {

/// A counter with one writer and any number of readers. It costs no more instructions than a plain
/// integer.
/// Atomic.
class event_counter {
public:
    void add(std::uint64_t more = 1) noexcept {
        // relaxed throughout: a count orders nothing, and only its one writer reads the value
        // before it adds.
        value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// SMB2 has that many commands, numbered from zero.
inline constexpr std::size_t commands_count =
    static_cast<std::size_t>(wire::command::server_to_client_notification);

/// The work done for clients so far, as plain values that can be added and subtracted.
struct traffic {
    std::array<std::uint64_t, commands_count> requests{};  // by command; answered, well or not
    std::uint64_t failures = 0;                            // of them, answered with an error
    std::uint64_t read_bytes = 0;                          // from files and pipes, in replies to
                                                           // READ
    std::uint64_t written_bytes = 0;

    [[nodiscard]] std::uint64_t of(wire::command code) const noexcept {
        return requests[static_cast<std::size_t>(code)];
    }
    [[nodiscard]] std::uint64_t requests_of_all() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t some : requests)
            sum += some;
        return sum;
    }
    traffic& operator+=(const traffic& other) noexcept {
        for (std::size_t i = 0; i != requests.size(); ++i)
            requests[i] += other.requests[i];
        failures += other.failures;
        read_bytes += other.read_bytes;
        written_bytes += other.written_bytes;
        return *this;
    }
};

/// The counters of the traffic.
/// Atomic: the thread that the connection belongs to counts; any thread calls now().
class traffic_counters {
public:
    void served(wire::command code, bool has_failed) noexcept {
        if (static_cast<std::size_t>(code) >= commands_count) return;  // set by the client; refused
        requests_[static_cast<std::size_t>(code)].add();
        if (has_failed) failures_.add();
    }
    void has_read(std::uint64_t bytes) noexcept { read_bytes_.add(bytes); }
    void has_written(std::uint64_t bytes) noexcept { written_bytes_.add(bytes); }

    [[nodiscard]] traffic now() const noexcept {
        traffic sum{.requests = {},
                    .failures = failures_.value(),
                    .read_bytes = read_bytes_.value(),
                    .written_bytes = written_bytes_.value()};
        for (std::size_t i = 0; i != commands_count; ++i)
            sum.requests[i] = requests_[i].value();
        return sum;
    }

private:
    std::array<event_counter, commands_count> requests_{};
    event_counter failures_;
    event_counter read_bytes_;
    event_counter written_bytes_;
};

}  // namespace sluice::smb::server
