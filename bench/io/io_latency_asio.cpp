// Asio reads files only over io_uring, which it then uses for files alone: its pipes stay with
// epoll.

#include <array>
#include <asio.hpp>

#include "bench/io/io_file_peers.hpp"
#include "bench/io/io_latency_peers.hpp"
#include "bench/io/io_pipe_peers.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {
namespace {

struct asio_file_reader {
    asio::random_access_file file;
    run& timed;
    std::uint64_t left;
    random_reads places{};
    alignas(random_reads::bytes) std::array<char, random_reads::bytes> block{};
    stopwatch watch{};

    void next() {
        file.async_read_some_at(places.offset(), asio::buffer(block),
                                [this](asio::error_code failed, std::size_t bytes) {
                                    ENSURE(not failed and bytes == random_reads::bytes);
                                    timed.record(watch.lap());
                                    if (--left != 0) next();
                                });
    }
};

}  // namespace

void asio_file_latency(run& repeat, int descriptor) {
    asio::io_context context(1);  // one thread: it can omit its locks
    asio_file_reader reader{
        .file = asio::random_access_file(context, descriptor), .timed = repeat, .left = repeat.operations()};
    repeat.measure([&] {
        reader.next();
        context.run();
    });
}

}  // namespace sluice::bench::peers
