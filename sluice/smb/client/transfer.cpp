#include "sluice/smb/client/transfer.hpp"

#include <memory>

#include "sluice/base/buffer_pool.hpp"

namespace sluice::smb::client {

std::string transfer_error::message() const {
    if (remote) return remote->message();
    if (not local) return {};
    if (local->descriptor() == error::no_descriptor) return local->message();
    // The caller knows the file, and the user does not know the number.
    return local->reason();
}

namespace {

// A segment in transfer, and its waiter.
class piece {
public:
    explicit piece(pool_buffer memory) noexcept : memory_(std::move(memory)) {}

    [[nodiscard]] mutable_bytes room() noexcept { return memory_.bytes(); }

    void begin() noexcept { is_done_ = false; }
    void finish(outcome<std::size_t> with) noexcept {
        came_ = with;
        is_done_ = true;
        if (waiter_) std::exchange(waiter_, nullptr).resume();
    }
    [[nodiscard]] bool is_done() const noexcept { return is_done_; }

    // Awaits the result of the transfer.
    [[nodiscard]] bool await_ready() const noexcept { return is_done_; }
    void await_suspend(std::coroutine_handle<> who) noexcept { waiter_ = who; }
    [[nodiscard]] outcome<std::size_t> await_resume() const noexcept { return came_; }

private:
    pool_buffer memory_;
    outcome<std::size_t> came_ = std::size_t{0};
    std::coroutine_handle<> waiter_;
    bool is_done_ = true;
};

// Reads until `room` is full or the file ends.
io::task<void> fetch(remote_file& from, piece& into, mutable_bytes room,
                     std::uint64_t offset_bytes) noexcept {
    std::size_t have = 0;
    while (have != room.size()) {
        io::task<outcome<std::size_t>> reading = from.co_read(*room.from(have), offset_bytes + have);
        const outcome<std::size_t> got = co_await std::move(reading);
        if (not got) {
            into.finish(got);
            co_return;
        }
        if (*got == 0) break;
        have += *got;
    }
    into.finish(have);
}

io::task<void> store(remote_file& to, piece& from, bytes_view data, std::uint64_t offset_bytes) noexcept {
    std::size_t done = 0;
    while (done != data.size()) {
        io::task<outcome<std::size_t>> writing = to.co_write(*data.from(done), offset_bytes + done);
        const outcome<std::size_t> took = co_await std::move(writing);
        if (not took) {
            from.finish(took);
            co_return;
        }
        if (*took == 0) {
            from.finish(
                failed(client_error::of_protocol("write", "the write returned 0 bytes without an error")));
            co_return;
        }
        done += *took;
    }
    from.finish(done);
}

// The segments of one transfer, used as a ring.
struct pieces {
    pieces(remote_file& file, std::uint32_t bytes_max, std::uint64_t bytes_left)
        : piece_bytes(bytes_max), tasks(file.in().of().first().deps().loop) {
        const std::uint64_t wanted = bytes_left / piece_bytes + 1;
        const std::size_t count = static_cast<std::size_t>(
            std::min({wanted, transfer_window_bytes / piece_bytes, transfer_pieces_max}));
        for (std::size_t i = 0; i != count; ++i) {
            pool_buffer one = memory.take(piece_bytes);
            if (not one) break;
            ring.push_back(std::make_unique<piece>(std::move(one)));
        }
    }
    // Fewer segments make the transfer slower. It needs at least one.
    [[nodiscard]] bool lack_memory() const noexcept { return ring.empty(); }
    [[nodiscard]] piece& at(std::uint64_t index) { return *ring[index % ring.size()]; }

    std::size_t piece_bytes;
    buffer_pool memory{0};  // aligned to pages, which the kernel copies faster
    std::vector<std::unique_ptr<piece>> ring;
    io::task_group tasks;
};

// Ends pending requests before their memory is freed. Their errors are irrelevant.
[[nodiscard]] std::unexpected<transfer_error> because(const client_error& why) {
    return std::unexpected(transfer_error{.remote = why, .local = {}});
}
[[nodiscard]] std::unexpected<transfer_error> because(const error& why) {
    return std::unexpected(transfer_error{.remote = {}, .local = why});
}
[[nodiscard]] std::unexpected<transfer_error> for_lack_of_memory() {
    return because(error(std::errc::not_enough_memory, "copy a file"));
}

}  // namespace

io::task<transferred<std::uint64_t>> download(remote_file& from, std::uint64_t offset_bytes,
                                              std::uint64_t end_bytes, const byte_taker& to) noexcept {
    if (end_bytes <= offset_bytes) co_return offset_bytes;
    const std::uint64_t left = end_bytes - offset_bytes;
    pieces all(from, std::min(from.read_bytes_max(), download_piece_bytes), left);
    if (all.lack_memory()) co_return for_lack_of_memory();
    const auto bytes_of = [&](std::uint64_t index) {
        return static_cast<std::size_t>(
            std::min<std::uint64_t>(all.piece_bytes, left - index * all.piece_bytes));
    };
    std::uint64_t asked = 0;
    transferred<std::uint64_t> ended = offset_bytes;
    for (std::uint64_t taken = 0; taken * all.piece_bytes < left; ++taken) {
        while (asked < taken + all.ring.size() and asked * all.piece_bytes < left) {
            piece& next = all.at(asked);
            next.begin();
            all.tasks.spawn(fetch(from, next, *next.room().first(bytes_of(asked)),
                                  offset_bytes + asked * all.piece_bytes));
            ++asked;
        }
        piece& oldest = all.at(taken);
        const outcome<std::size_t> came = co_await oldest;
        if (not came) {
            ended = because(came.error());
            break;
        }
        if (*came != 0) {
            const result<void> put = to(*oldest.room().first(*came), *ended);
            if (not put) {
                ended = because(put.error());
                break;
            }
            *ended += *came;
        }
        if (*came < bytes_of(taken)) break;  // the file is shorter than the server said
    }
    co_await all.tasks.join();
    co_return ended;
}

io::task<transferred<std::uint64_t>> upload(remote_file& to, std::uint64_t offset_bytes,
                                            std::uint64_t expected_end, const byte_source& from) noexcept {
    const std::uint64_t left = expected_end > offset_bytes ? expected_end - offset_bytes : 0;
    pieces all(to, std::min(to.write_bytes_max(), upload_piece_bytes), left);
    if (all.lack_memory()) co_return for_lack_of_memory();
    std::optional<transfer_error> copy_error;
    std::uint64_t end = offset_bytes;
    for (std::uint64_t index = 0;; ++index) {
        piece& next = all.at(index);
        const outcome<std::size_t> stored = co_await next;  // the use before this one
        if (not stored) {
            copy_error = transfer_error{.remote = stored.error(), .local = {}};
            break;
        }
        const result<std::size_t> gave = from(next.room(), end);
        if (not gave) {
            copy_error = transfer_error{.remote = {}, .local = gave.error()};
            break;
        }
        if (*gave == 0) break;
        next.begin();
        all.tasks.spawn(store(to, next, *next.room().first(*gave), end));
        end += *gave;
    }
    co_await all.tasks.join();
    for (const auto& each : all.ring) {
        const outcome<std::size_t> stored = co_await *each;
        if (not stored and not copy_error) copy_error = transfer_error{.remote = stored.error(), .local = {}};
    }
    if (copy_error) co_return std::unexpected(*copy_error);
    co_return end;
}

}  // namespace sluice::smb::client
