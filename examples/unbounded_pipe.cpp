// A pipe without a limit, made of a file without a name. The writer appends, and the reader reads
// from the start and calls `zero` on the bytes it has read, so that the file system frees those
// blocks. The file grows, but only the unread bytes take space. The writer never waits for the
// reader; with a pipe of the system, it does after 64 KiB. The file is removed when both ends are
// closed, or the machine stops.
//
// The program fails unless it reads the bytes that it wrote.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/file_status.hpp"

using namespace sluice::io;

namespace {

class unbounded_pipe {
public:
    static sluice::result<unbounded_pipe> create(const path_handle& directory) {
        auto reader = file_handle::temp_inode(directory);
        if (not reader) return sluice::failure(reader.error());
        // The same inode once more: each write goes to the end, atomically.
        const std::string name = "/proc/self/fd/" + std::to_string(reader->descriptor());
        auto writer = file_handle::open({}, path_view(name.c_str()), mode::append);
        if (not writer) return sluice::failure(writer.error());
        return unbounded_pipe(std::move(*reader), std::move(*writer));
    }

    io_result<const_bytes_type> write(const_bytes_type bytes) {
        return writer_.write(io_request<const_bytes_type>{bytes});  // appending takes no offset
    }

    // Returns no bytes if the pipe is empty.
    io_result<bytes_type> read(bytes_type into) {
        const auto got = reader_.read(io_request<bytes_type>{into, position_});
        if (not got or got->empty()) return got;
        // From the block that the last read ended in: the file system frees only whole ones.
        const extent_type from = position_ - position_ % block_bytes;
        position_ += got->size();
        if (auto freed = reader_.zero({.offset = from, .length = position_ - from}); not freed)
            return sluice::failure(freed.error());
        return got;
    }

    [[nodiscard]] extent_type length() const { return reader_.maximum_extent().value(); }
    [[nodiscard]] extent_type allocated() const {
        return status_of(reader_, stat_fields::allocated).value().allocated_bytes;
    }

private:
    static constexpr extent_type block_bytes = 4096;

    unbounded_pipe(file_handle reader, file_handle writer)
        : reader_(std::move(reader)), writer_(std::move(writer)) {}

    file_handle reader_;
    file_handle writer_;
    extent_type position_ = 0;
};

// Returns the byte that the program writes at this position of the stream.
std::byte expected_at(extent_type place) {
    return static_cast<std::byte>(place * 2654435761U >> 8);
}

bool write_burst(unbounded_pipe& to, extent_type& written, std::size_t bytes) {
    std::array<std::byte, 30'000> block;
    for (std::size_t left = bytes; left != 0;) {
        const auto piece = std::span(block).first(std::min(left, block.size()));
        for (std::byte& each : piece)
            each = expected_at(written++);
        if (to.write(piece).bytes_transferred() != piece.size()) return false;
        left -= piece.size();
    }
    return true;
}

// Reads until the pipe is empty, or at most this number of blocks.
bool read_some(unbounded_pipe& from, extent_type& taken, std::size_t blocks_max) {
    std::array<std::byte, 50'000> block;
    for (; blocks_max != 0; --blocks_max) {
        const auto got = from.read(block);
        if (not got) return false;
        if (got->empty()) return true;
        for (const std::byte each : *got)
            if (each != expected_at(taken++)) return false;
    }
    return true;
}

void report(const char* when, const unbounded_pipe& pipe) {
    std::printf("%s: %llu bytes long, %llu allocated\n", when, static_cast<unsigned long long>(pipe.length()),
                static_cast<unsigned long long>(pipe.allocated()));
}

}  // namespace

int main(int argc, char** argv) {
    const auto directory = path_handle::open({}, argc > 1 ? argv[1] : ".");
    auto pipe = directory ? unbounded_pipe::create(*directory) : sluice::failure(directory.error());
    if (not pipe) {
        std::fprintf(stderr, "%s: %s\n", argv[0], pipe.error().message().c_str());
        return 1;
    }
    extent_type written = 0;
    extent_type taken = 0;
    for (int burst = 0; burst < 3; ++burst) {
        if (not write_burst(*pipe, written, 4'000'000)) return 1;
        report("after a burst", *pipe);
        if (not read_some(*pipe, taken, 60)) return 1;
    }
    if (not read_some(*pipe, taken, 1000)) return 1;
    report("all read", *pipe);
    return taken == written ? 0 : 1;
}
