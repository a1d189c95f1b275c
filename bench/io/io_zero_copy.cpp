// The savings of a zero-copy send on a network device that needs no copy. A file in memory is read
// into a buffer and sent after a header of 84 bytes, like a signed or encrypted READ's reply, by
// our calls over io_uring. `limit` copies, and so needs only one buffer; the other is zero-copy,
// with as many buffers as replies in flight. Over loopback the kernel always copies, so this needs
// a device that does not, and root to create one (silent_network.hpp); otherwise it is skipped.

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/io/cached_file.hpp"
#include "bench/silent_network.hpp"
#include "sluice/base/buffer_pool.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

constexpr std::uint64_t file_bytes = 64U << 20;
constexpr std::size_t header_bytes = 84;
constexpr std::size_t under_way_max = 16;

file_handle& cached_file() {
    static file_handle file = make_cached_file(file_bytes);
    return file;
}

// A reply: read, sent, and reused once it is sent.
struct reply {
    explicit reply(buffer_pool& pool, std::size_t size)
        : head(pool.take(header_bytes)), data(pool.take(size)) {
        pieces = {const_buffer(std::span<const std::byte>(head.bytes())),
                  const_buffer(std::span<const std::byte>(data.bytes()))};
    }
    struct send_receiver {
        reply* self;
        void set_value(io_result<const_buffers_type>&& sent) noexcept {
            ENSURE(sent.bytes_transferred() == self->size());
            self->is_sent = true;
        }
        void set_done() noexcept { self->is_free = true; }
    };
    void read(std::uint64_t& offset) {
        ENSURE(cached_file().read(io_request<bytes_type>{data.bytes(), offset}).bytes_transferred() ==
               data.size());
        offset = offset + 2 * data.size() > file_bytes ? 0 : offset + data.size();
    }
    [[nodiscard]] std::size_t size() const { return header_bytes + data.size(); }

    pool_buffer head;
    pool_buffer data;
    std::array<const_buffer, 2> pieces;
    std::optional<io_operation_connection<transfer_sender<const_buffers_type>, send_receiver>> sending;
    bool is_sent = false;
    bool is_free = true;
};

void warm_up(silent_connection& through, socket_handle& socket, reply& one) {
    for (std::size_t done = 0; done < 32U << 20; done += one.size()) {  // until its window is wide
        ENSURE(socket.write(io_request<const_buffers_type>{one.pieces}).bytes_transferred() == one.size());
        through.sent(one.size());
    }
}

reply& free_one(std::deque<reply>& all, io_multiplexer& loop) {
    for (;;) {
        for (reply& each : all)
            if (each.is_free) return each;
        (void)loop.run();
    }
}

void send(run& repeat, std::size_t size, const uring_options& options) {
    if (not silent_connection::is_possible()) return repeat.skip("needs root, ifb, tun and ip");
    auto loop = make_uring_multiplexer(options);
    if (not loop) return repeat.skip(loop.error().message());
    silent_connection through;
    buffer_pool pool;
    std::deque<reply> all;
    for (std::size_t i = 0; i != under_way_max; ++i)
        all.emplace_back(pool, size);
    auto socket = socket_handle::adopt(::dup(through.socket())).value();
    warm_up(through, socket, all.front());
    socket.set_multiplexer(loop->get()).value();
    std::uint64_t offset = 0;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            reply& one = free_one(all, **loop);
            one.read(offset);
            one.is_sent = one.is_free = false;
            one.sending.emplace(async_write(socket, io_request<const_buffers_type>{one.pieces}),
                                reply::send_receiver{&one});
            one.sending->start();
            while (not one.is_sent)
                (void)(*loop)->run();
            through.sent(one.size());
        }
    });
    while ((*loop)->run().value_or(0) > 0) {}
    repeat.note("copied_after_all", static_cast<double>((*loop)->zero_copy_sends().copied));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark sends("io_zero_copy", "What does a zero-copy send save on a device that needs no copy?");
    struct piece {
        const char* name;
        std::size_t bytes;
    };
    for (const piece& size : {piece{"64k", 65536}, piece{"256k", 256 << 10}, piece{"1m", 1 << 20}}) {
        sends
            .add({.name = std::string("read_send_") + size.name,
                  .metric = metric::cpu_per_operation,
                  .operations = (512U << 20) / size.bytes,
                  .cpu = cpu_clock::thread})
            .subject("limit", [size](run& repeat) { send(repeat, size.bytes, {}); })
            .subject("sluice.zero_copy", [size](run& repeat) {
                send(repeat, size.bytes, {.zero_copy_send_bytes_min = size.bytes});
            });
    }
    return sends.main(argc, argv);
}
