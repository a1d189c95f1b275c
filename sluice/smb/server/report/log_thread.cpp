#include "sluice/smb/server/report/log_thread.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

namespace {

// An event in the queue: its severity, the number of its strings, and each with
// its length in front.

[[nodiscard]] std::size_t bytes_of(std::string_view text) noexcept {
    return sizeof(std::uint32_t) + text.size();
}

void append(std::vector<char>& to, std::string_view text) {
    const auto length = static_cast<std::uint32_t>(text.size());
    std::array<char, sizeof length> bytes{};
    std::memcpy(bytes.data(), &length, sizeof length);
    to.insert(to.end(), bytes.begin(), bytes.end());
    to.insert(to.end(), text.begin(), text.end());
}

void append_event(std::vector<char>& to, event_severity severity, std::string_view what,
                  std::span<const event_field> fields) {
    to.push_back(static_cast<char>(severity));
    to.push_back(static_cast<char>(fields.size()));
    append(to, what);
    for (const event_field& each : fields) {
        append(to, each.name);
        append(to, each.value);
    }
}

[[nodiscard]] std::string_view take_text(std::string_view& from) noexcept {
    std::uint32_t length = 0;
    ENSURE(from.size() >= sizeof length, "a text has its length in front");
    std::memcpy(&length, from.data(), sizeof length);
    from.remove_prefix(sizeof length);
    ENSURE(from.size() >= length, "a text is in the queue as a whole");
    const std::string_view text = from.substr(0, length);
    from.remove_prefix(length);
    return text;
}

using field_array = std::array<event_field, log_thread::fields_max>;

// An initializer_list has its length in its type, so to speak: one function for each length.
template <std::size_t... I>
void write_some(event_log& to, event_severity severity, std::string_view what, const field_array& fields,
                std::index_sequence<I...>) {
    to.write(severity, what, {fields[I]...});
}
template <std::size_t Count = 0>
void write_first(event_log& to, event_severity severity, std::string_view what, const field_array& fields,
                 std::size_t count) {
    if (count == Count) {
        write_some(to, severity, what, fields, std::make_index_sequence<Count>());
        return;
    }
    if constexpr (Count != log_thread::fields_max) write_first<Count + 1>(to, severity, what, fields, count);
}

}  // namespace

log_thread::log_thread(event_log& to, event_severity least) : to_(to), least_(least) {
    queue_.reserve(bytes_max);
    thread_ = std::thread([this] { run(); });
}

log_thread::~log_thread() {
    {
        const lock_guard held(mutex_);
        stops_ = true;
    }
    has_work_.notify_one();
    thread_.join();
    const lock_guard held(mutex_);
    ENSURE(written_ == queued_ and reported_ == dropped_,
           "every event is written or counted before the log goes");
}

void log_thread::write(event_severity severity, std::string_view what,
                       std::initializer_list<event_field> fields) noexcept {
    if (severity < least_) return;
    const std::size_t count = std::min(fields.size(), fields_max);
    std::size_t bytes = 2 + bytes_of(what);
    for (std::size_t i = 0; i != count; ++i)
        bytes += bytes_of(fields.begin()[i].name) + bytes_of(fields.begin()[i].value);
    {
        const lock_guard held(mutex_);
        ENSURE(queue_.size() <= bytes_max, "the queue has its bound");
        if (const std::size_t before = queue_.size(); bytes <= bytes_max - before) {
            append_event(queue_, severity, what, {fields.begin(), count});
            ENSURE(queue_.size() == before + bytes, "an event has the size it was measured to have");
            ++queued_;
        } else {
            ++dropped_;
        }
    }
    has_work_.notify_one();
}

bool log_thread::flush(std::chrono::milliseconds at_most) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    const lock_guard held(mutex_);
    const std::uint64_t last = queued_;
    ENSURE(written_ <= last, "events are written after they were queued");
    while (written_ < last)
        if (has_written_.wait_until(mutex_, until) == std::cv_status::timeout) return written_ >= last;
    return true;
}

std::uint64_t log_thread::dropped() const {
    const lock_guard held(mutex_);
    return dropped_;
}

void log_thread::run() {
    buffer events;
    events.reserve(bytes_max);
    for (;;) {
        std::uint64_t up_to = 0;
        std::uint64_t dropped = 0;
        {
            const lock_guard held(mutex_);
            while (queue_.empty() and dropped_ == reported_ and not stops_)
                has_work_.wait(mutex_);
            if (queue_.empty() and dropped_ == reported_) return;
            events.swap(queue_);
            up_to = queued_;
            dropped = dropped_ - std::exchange(reported_, dropped_);
        }
        write_all(events);
        events.clear();
        if (dropped != 0)
            to_.write(event_severity::warning, "log lines dropped: log queue full",
                      {{"lines", std::to_string(dropped)}});
        {
            const lock_guard held(mutex_);
            ENSURE(written_ <= up_to and up_to <= queued_, "events are written in their order");
            written_ = up_to;
        }
        has_written_.notify_all();
    }
}

void log_thread::write_all(const buffer& events) {
    std::string_view rest(events.data(), events.size());
    while (not rest.empty()) {
        ENSURE(rest.size() >= 2, "an event has its severity and its number of fields in front");
        const auto severity = static_cast<event_severity>(rest[0]);
        const auto count = static_cast<std::size_t>(rest[1]);
        rest.remove_prefix(2);
        ENSURE(count <= fields_max, "an event has no more fields than are queued");
        const std::string_view what = take_text(rest);
        field_array fields{};
        for (std::size_t i = 0; i != count; ++i) {
            fields.at(i).name = take_text(rest);
            fields.at(i).value = take_text(rest);
        }
        write_first(to_, severity, what, fields, count);
    }
}

}  // namespace sluice::smb::server
