// Reads a complete file by one asynchronous scatter read, into pieces of 64 KiB that need not be
// adjacent, and writes them to another by one gather write:
//
//     whole_file SOURCE DESTINATION

#include <cstdio>
#include <memory>
#include <vector>

#include "sluice/io/best_available.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

using namespace sluice::io;

namespace {

constexpr std::size_t piece_bytes = 64 << 10;

// Memory for a file of the given length, and the list of its pieces.
struct pieces {
    explicit pieces(extent_type length) {
        for (extent_type left = length; left != 0; left -= list.back().size()) {
            const auto bytes = static_cast<std::size_t>(std::min<extent_type>(left, piece_bytes));
            memory.push_back(std::make_unique<std::byte[]>(bytes));
            list.emplace_back(memory.back().get(), bytes);
        }
    }
    std::vector<std::unique_ptr<std::byte[]>> memory;
    std::vector<buffer> list;
};

task<sluice::result<void>> copy(const char* source, const char* destination) {
    auto from = file_handle::open({}, source);
    if (not from) co_return sluice::failure(from.error());
    auto to = file_handle::open({}, destination, mode::write, creation::always_new);
    if (not to) co_return sluice::failure(to.error());
    const auto length = from->maximum_extent();
    if (not length) co_return sluice::failure(length.error());

    pieces into(*length);
    const auto got = co_await co_read(*from, io_request<buffers_type>{into.list, 0});
    if (not got) co_return sluice::failure(got.error());
    // The result is shorter than the request if the file was truncated in between.
    std::vector<const_buffer> written(got->begin(), got->end());
    const auto put = co_await co_write(*to, io_request<const_buffers_type>{written, 0});
    if (not put) co_return sluice::failure(put.error());
    co_return {};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SOURCE DESTINATION\n", argv[0]);
        return 2;
    }
    const auto loop = this_thread::multiplexer();
    const auto copied = loop ? sync_wait(**loop, copy(argv[1], argv[2])) : sluice::failure(loop.error());
    if (not copied) std::fprintf(stderr, "%s: %s\n", argv[0], copied.error().message().c_str());
    return copied ? 0 : 1;
}
