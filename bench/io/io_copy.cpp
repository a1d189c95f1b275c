// A file to a socket and back, with each interface of the kernel: the overhead of our calls
// compared with the bare ones, and the cheapest interface for each size. A response is a header of
// 84 bytes (like an SMB2 READ) and the data.
//
// Both take turns of some milliseconds on the same sockets, pipes and memory. The target is less
// than 3%, and with separate sockets two runs of the very same calls differ by more. A guard
// protects the thread from SIGPIPE, as in a program that sends files.

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/io/cached_file.hpp"
#include "bench/io/copy_partner.hpp"
#include "bench/io/pipe_source.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/stream/splice.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

constexpr std::size_t header_bytes = 84;
constexpr std::uint64_t file_bytes = 64U << 20;
const std::array<std::byte, header_bytes> header{};

file_handle& cached_file() {
    static file_handle file = make_cached_file(file_bytes);
    return file;
}

// Both subjects move consecutive pieces of the file, in a circle, in alternating turns. No subject
// gets a piece whose memory a cache still has from the other.
template <class Raw, class Ours>
void take_turns(turns& subjects, std::size_t size, Raw raw, Ours ours) {
    std::uint64_t offset = 0;
    const auto turn_of = [&](auto& each) {
        return [&offset, &each, size](std::uint64_t operations) {
            for (; operations != 0; --operations) {
                each(offset);
                offset = offset + size >= file_bytes ? 0 : offset + size;
            }
        };
    };
    const turns::turn both[] = {turn_of(raw), turn_of(ours)};
    subjects.measure(both);
}

// --- to a socket

void read_send(turns& subjects, std::size_t size) {
    copy_partner peer(copy_partner::does::receive);
    auto socket = socket_handle::adopt(peer.release()).value();
    std::vector<std::byte> block(size);
    const auto raw = [&](std::uint64_t offset) {
        ENSURE(pread(cached_file().descriptor(), block.data(), size, static_cast<off_t>(offset)) ==
               static_cast<ssize_t>(size));
        iovec pieces[] = {{const_cast<std::byte*>(header.data()), header.size()}, {block.data(), size}};
        msghdr message{};
        message.msg_iov = pieces;
        message.msg_iovlen = 2;
        ENSURE(sendmsg(socket.descriptor(), &message, MSG_NOSIGNAL) ==
               static_cast<ssize_t>(size + header_bytes));
    };
    const auto ours = [&](std::uint64_t offset) {
        const auto got = cached_file().read(io_request<bytes_type>{block, offset});
        ENSURE(got.bytes_transferred() == size);
        const_buffer pieces[] = {const_buffer(header), const_buffer(*got)};
        const auto put = socket.write(io_request<const_buffers_type>{pieces});
        ENSURE(put.bytes_transferred() == size + header_bytes);
    };
    take_turns(subjects, size, raw, ours);
}

void send_header(const socket_handle& socket) {
    ENSURE(send(socket.descriptor(), header.data(), header.size(), MSG_MORE | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(header_bytes));
}

void by_sendfile(turns& subjects, std::size_t size) {
    const sigpipe_guard quiet;
    copy_partner peer(copy_partner::does::receive);
    auto socket = socket_handle::adopt(peer.release()).value();
    const auto raw = [&](std::uint64_t offset) {
        send_header(socket);
        auto at = static_cast<off_t>(offset);
        for (std::size_t left = size; left != 0;) {
            const ssize_t sent = sendfile(socket.descriptor(), cached_file().descriptor(), &at, left);
            ENSURE(sent > 0);
            left -= static_cast<std::size_t>(sent);
        }
    };
    const auto ours = [&](std::uint64_t offset) {
        const auto sent =
            send_file_to(cached_file(), socket, {.header = header, .offset = offset, .length = size});
        ENSURE(sent.value() == size + header_bytes);
    };
    take_turns(subjects, size, raw, ours);
}

void by_splice(turns& subjects, std::size_t size) {
    const sigpipe_guard quiet;
    copy_partner peer(copy_partner::does::receive);
    auto socket = socket_handle::adopt(peer.release()).value();
    auto pipe = pipe_handle::anonymous(1 << 20).value();
    auto through = splice_pipe::create().value();
    const auto raw = [&](std::uint64_t offset) {
        send_header(socket);
        auto at = static_cast<off_t>(offset);
        for (std::size_t left = size; left != 0;) {
            const ssize_t held = splice(cached_file().descriptor(), &at, pipe.writer.descriptor(), nullptr,
                                        left, SPLICE_F_MOVE);
            ENSURE(held > 0);
            left -= static_cast<std::size_t>(held);
            for (auto unsent = static_cast<std::size_t>(held); unsent != 0;) {
                const ssize_t sent = splice(pipe.reader.descriptor(), nullptr, socket.descriptor(), nullptr,
                                            unsent, SPLICE_F_MOVE | (left != 0 ? SPLICE_F_MORE : 0U));
                ENSURE(sent > 0);
                unsent -= static_cast<std::size_t>(sent);
            }
        }
    };
    const auto ours = [&](std::uint64_t offset) {
        const auto sent = send_file_to(cached_file(), socket,
                                       {.header = header, .offset = offset, .length = size}, through);
        ENSURE(sent.value() == size + header_bytes);
    };
    take_turns(subjects, size, raw, ours);
}

// --- to a file

// With as much memory as ours: the effect of a larger block on the caches is not the question here.
void receive_write(turns& subjects, std::size_t size) {
    copy_partner peer(copy_partner::does::send);
    auto socket = socket_handle::adopt(peer.release()).value();
    std::vector<std::byte> scratch(std::min<std::size_t>(size, 256U << 10));
    const auto raw = [&](std::uint64_t offset) {
        for (std::size_t done = 0; done != size;) {
            const std::size_t wanted = std::min(size - done, scratch.size());
            const ssize_t got = recv(socket.descriptor(), scratch.data(), wanted, MSG_WAITALL);
            ENSURE(got == static_cast<ssize_t>(wanted));
            ENSURE(pwrite(cached_file().descriptor(), scratch.data(), wanted,
                          static_cast<off_t>(offset + done)) == got);
            done += wanted;
        }
    };
    const auto ours = [&](std::uint64_t offset) {
        const receive_file_request request{.offset = offset, .length = size, .scratch = scratch};
        ENSURE(receive_file_from(socket, cached_file(), request).value() == size);
    };
    take_turns(subjects, size, raw, ours);
}

void receive_splice(turns& subjects, std::size_t size) {
    copy_partner peer(copy_partner::does::send);
    auto socket = socket_handle::adopt(peer.release()).value();
    auto pipe = pipe_handle::anonymous(1 << 20).value();
    auto through = splice_pipe::create().value();
    const auto raw = [&](std::uint64_t offset) {
        auto at = static_cast<off_t>(offset);
        for (std::size_t left = size; left != 0;) {
            const ssize_t held =
                splice(socket.descriptor(), nullptr, pipe.writer.descriptor(), nullptr, left, SPLICE_F_MOVE);
            ENSURE(held > 0);
            left -= static_cast<std::size_t>(held);
            for (auto unwritten = static_cast<std::size_t>(held); unwritten != 0;) {
                const ssize_t written = splice(pipe.reader.descriptor(), nullptr, cached_file().descriptor(),
                                               &at, unwritten, SPLICE_F_MOVE);
                ENSURE(written > 0);
                unwritten -= static_cast<std::size_t>(written);
            }
        }
    };
    const auto ours = [&](std::uint64_t offset) {
        const receive_file_request request{.offset = offset, .length = size};
        ENSURE(receive_file_from(socket, cached_file(), request, through).value() == size);
    };
    take_turns(subjects, size, raw, ours);
}

struct way {
    const char* name;
    const char* our_name;
    void (*compare)(turns&, std::size_t);
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark copy("io_copy", "What do our calls add to the kernel's transfers between a file and a socket?");
    static constexpr way ways[] = {
        {"read_send", "sluice.read_write", read_send},
        {"sendfile", "sluice.send_file_to", by_sendfile},
        {"splice", "sluice.send_file_to.through_pipe", by_splice},
        {"receive_write", "sluice.receive_file_from", receive_write},
        {"receive_splice", "sluice.receive_file_from.through_pipe", receive_splice},
    };
    struct piece {
        const char* name;
        std::size_t bytes;
        std::uint64_t per_turn;  // some milliseconds: long for the clock, short for the machine
    };
    for (const piece& size : {piece{"4k", 4096, 512}, piece{"64k", 65536, 64}, piece{"1m", 1 << 20, 5},
                              piece{"8m", 8 << 20, 1}}) {
        for (const way& each : ways) {
            copy.add({.name = std::string(each.name) + "_" + size.name,
                      .metric = metric::gigabytes_per_second,
                      .operations = size.per_turn,
                      .bytes_per_operation = size.bytes,
                      .cpu = cpu_clock::thread})
                .subjects_in_turns({"limit", each.our_name},
                                   [&each, size](turns& both) { each.compare(both, size.bytes); });
        }
    }
    return copy.main(argc, argv);
}
