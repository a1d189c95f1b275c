// Copies a file in a coroutine: reads top to bottom like the blocking one, but the thread is free
// while the disk works.

#include <array>
#include <cstdio>

#include "sluice/io/best_available.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

using namespace sluice::io;

namespace {

task<sluice::result<void>> copy(const char* source, const char* destination) {
    auto from = file_handle::open({}, source);
    if (not from) co_return sluice::failure(from.error());
    auto to = file_handle::open({}, destination, mode::write, creation::always_new);
    if (not to) co_return sluice::failure(to.error());

    // This thread's own multiplexer: io_uring where the kernel allows it, else epoll.
    if (auto attached = from->set_multiplexer(); not attached) co_return attached;
    if (auto attached = to->set_multiplexer(); not attached) co_return attached;

    static std::array<std::byte, 65536> block;
    for (extent_type offset = 0;;) {
        const auto got = co_await co_read(*from, io_request<bytes_type>{block, offset});
        if (not got) co_return sluice::failure(got.error());
        if (got->empty()) break;  // the end of the file
        const auto put = co_await co_write(*to, io_request<const_bytes_type>{*got, offset});
        if (not put) co_return sluice::failure(put.error());
        offset += got->size();
    }
    const auto durable = co_await co_barrier(*to);
    if (not durable) co_return sluice::failure(durable.error());
    co_return to->close();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SOURCE DESTINATION\n", argv[0]);
        return 2;
    }
    const auto multiplexer = this_thread::multiplexer();
    if (not multiplexer) {
        std::fprintf(stderr, "%s: %s\n", argv[0], multiplexer.error().message().c_str());
        return 1;
    }
    const auto copied = sync_wait(**multiplexer, copy(argv[1], argv[2]));
    if (not copied) std::fprintf(stderr, "%s: %s\n", argv[0], copied.error().message().c_str());
    return copied ? 0 : 1;
}
