// A file to a socket and back, by each way the kernel offers: what our calls add to the bare ones, and which
// way is the cheapest at which size. A response is a header of 84 bytes (as of an SMB2 READ) and the data.
//
// Our rows protect their thread from SIGPIPE by a guard, as a thread that sends files should. The bare calls
// run without protection: a peer that went away would end the program.

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/copy_partner.hpp"
#include "bench/harness/benchmark.hpp"
#include "bench/pipe_source.hpp"
#include "sluice/io/file_handle.hpp"
#include "sluice/io/sigpipe_guard.hpp"
#include "sluice/io/socket_handle.hpp"
#include "sluice/io/splice.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

constexpr std::size_t header_bytes = 84;
constexpr std::uint64_t file_bytes = 64U << 20;
const std::array<std::byte, header_bytes> header{};

// Cached, in the current directory; removed with the program.
file_handle& cached_file() {
    static file_handle file = [] {
        auto made = file_handle::temp_inode({}, caching::all).value();
        static std::array<std::byte, 1 << 20> block{};
        for (std::uint64_t at = 0; at < file_bytes; at += block.size()) {
            ENSURE(made.write(io_request<const_bytes_type>{block, at}).bytes_transferred() == block.size());
        }
        ENSURE(made.barrier().has_value());
        return made;
    }();
    return file;
}

// Runs `each(offset)` for consecutive pieces of the file, round and round.
template <class Each>
void for_pieces(run& repeat, std::size_t size, Each each) {
    repeat.measure([&] {
        std::uint64_t offset = 0;
        for (auto left = repeat.operations(); left != 0; --left) {
            each(offset);
            offset = offset + size >= file_bytes ? 0 : offset + size;
        }
    });
}

// --- to a socket

void raw_read_send(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::receive);
    std::vector<std::byte> block(size);
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        ENSURE(pread(cached_file().descriptor(), block.data(), size, static_cast<off_t>(offset)) ==
               static_cast<ssize_t>(size));
        iovec pieces[] = {{const_cast<std::byte*>(header.data()), header.size()}, {block.data(), size}};
        msghdr message{};
        message.msg_iov = pieces;
        message.msg_iovlen = 2;
        ENSURE(sendmsg(peer.socket(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size + header_bytes));
    });
}

void our_read_write(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::receive);
    auto socket = socket_handle::adopt(peer.release()).value();
    std::vector<std::byte> block(size);
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        const auto got = cached_file().read(io_request<bytes_type>{block, offset});
        ENSURE(got.bytes_transferred() == size);
        const_buffer pieces[] = {const_buffer(header), const_buffer(*got)};
        const auto put = socket.write(io_request<const_buffers_type>{pieces});
        ENSURE(put.bytes_transferred() == size + header_bytes);
    });
}

void raw_sendfile(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::receive);
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        ENSURE(send(peer.socket(), header.data(), header.size(), MSG_MORE | MSG_NOSIGNAL) ==
               static_cast<ssize_t>(header_bytes));
        auto at = static_cast<off_t>(offset);
        for (std::size_t left = size; left != 0;) {
            const ssize_t sent = sendfile(peer.socket(), cached_file().descriptor(), &at, left);
            ENSURE(sent > 0);
            left -= static_cast<std::size_t>(sent);
        }
    });
}

void our_send_file(run& repeat, std::size_t size) {
    const sigpipe_guard quiet;
    copy_partner peer(copy_partner::does::receive);
    auto socket = socket_handle::adopt(peer.release()).value();
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        const auto sent =
            send_file_to(cached_file(), socket, {.header = header, .offset = offset, .length = size});
        ENSURE(sent.value() == size + header_bytes);
    });
}

void raw_splice(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::receive);
    auto pipe = pipe_handle::anonymous(1 << 20).value();
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        ENSURE(send(peer.socket(), header.data(), header.size(), MSG_MORE | MSG_NOSIGNAL) ==
               static_cast<ssize_t>(header_bytes));
        auto at = static_cast<off_t>(offset);
        for (std::size_t left = size; left != 0;) {
            const ssize_t held = splice(cached_file().descriptor(), &at, pipe.writer.descriptor(), nullptr,
                                        left, SPLICE_F_MOVE);
            ENSURE(held > 0);
            left -= static_cast<std::size_t>(held);
            for (auto unsent = static_cast<std::size_t>(held); unsent != 0;) {
                const ssize_t sent = splice(pipe.reader.descriptor(), nullptr, peer.socket(), nullptr, unsent,
                                            SPLICE_F_MOVE | (left != 0 ? SPLICE_F_MORE : 0U));
                ENSURE(sent > 0);
                unsent -= static_cast<std::size_t>(sent);
            }
        }
    });
}

void our_splice(run& repeat, std::size_t size) {
    const sigpipe_guard quiet;
    copy_partner peer(copy_partner::does::receive);
    auto socket = socket_handle::adopt(peer.release()).value();
    auto through = splice_pipe::create().value();
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        const auto sent = send_file_to(cached_file(), socket,
                                       {.header = header, .offset = offset, .length = size}, through);
        ENSURE(sent.value() == size + header_bytes);
    });
}

// --- to a file

void raw_receive_write(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::send);
    std::vector<std::byte> block(size);
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        ENSURE(recv(peer.socket(), block.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size));
        ENSURE(pwrite(cached_file().descriptor(), block.data(), size, static_cast<off_t>(offset)) ==
               static_cast<ssize_t>(size));
    });
}

void our_receive_copied(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::send);
    auto socket = socket_handle::adopt(peer.release()).value();
    std::vector<std::byte> scratch(std::min<std::size_t>(size, 256U << 10));
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        const receive_file_request request{.offset = offset, .length = size, .scratch = scratch};
        ENSURE(receive_file_from(socket, cached_file(), request).value() == size);
    });
}

void raw_receive_splice(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::send);
    auto pipe = pipe_handle::anonymous(1 << 20).value();
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        auto at = static_cast<off_t>(offset);
        for (std::size_t left = size; left != 0;) {
            const ssize_t held =
                splice(peer.socket(), nullptr, pipe.writer.descriptor(), nullptr, left, SPLICE_F_MOVE);
            ENSURE(held > 0);
            left -= static_cast<std::size_t>(held);
            for (auto unwritten = static_cast<std::size_t>(held); unwritten != 0;) {
                const ssize_t written = splice(pipe.reader.descriptor(), nullptr, cached_file().descriptor(),
                                               &at, unwritten, SPLICE_F_MOVE);
                ENSURE(written > 0);
                unwritten -= static_cast<std::size_t>(written);
            }
        }
    });
}

void our_receive_splice(run& repeat, std::size_t size) {
    copy_partner peer(copy_partner::does::send);
    auto socket = socket_handle::adopt(peer.release()).value();
    auto through = splice_pipe::create().value();
    for_pieces(repeat, size, [&](std::uint64_t offset) {
        ENSURE(
            receive_file_from(socket, cached_file(), {.offset = offset, .length = size}, through).value() ==
            size);
    });
}

using subject = void (*)(run&, std::size_t);

struct way {
    const char* name;
    const char* our_name;
    subject raw;
    subject ours;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark copy("io_copy", "What do our calls add to the kernel's ways from a file to a socket and back?");
    static constexpr way ways[] = {
        {"read_send", "sluice.read_write", raw_read_send, our_read_write},
        {"sendfile", "sluice.send_file_to", raw_sendfile, our_send_file},
        {"splice", "sluice.send_file_to.through_pipe", raw_splice, our_splice},
        {"receive_write", "sluice.receive_file_from", raw_receive_write, our_receive_copied},
        {"receive_splice", "sluice.receive_file_from.through_pipe", raw_receive_splice, our_receive_splice},
    };
    struct piece {
        const char* name;
        std::size_t bytes;
        std::uint64_t count;
    };
    for (const piece& size : {piece{"4k", 4096, 200'000}, piece{"64k", 65536, 40'000},
                              piece{"1m", 1 << 20, 4'000}, piece{"8m", 8 << 20, 500}}) {
        for (const way& each : ways) {
            copy.add({.name = std::string(each.name) + "_" + size.name,
                      .metric = metric::gigabytes_per_second,
                      .operations = size.count,
                      .bytes_per_operation = size.bytes,
                      .cpu = cpu_clock::thread})
                .subject("limit", [&each, size](run& r) { each.raw(r, size.bytes); })
                .subject(each.our_name, [&each, size](run& r) { each.ours(r, size.bytes); });
        }
    }
    return copy.main(argc, argv);
}
