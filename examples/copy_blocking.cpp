// Copies a file by blocking calls. copy_coroutine.cpp and copy_sender.cpp do the same in
// the other two forms.

#include <array>
#include <cstdio>

#include "sluice/io/file/file_handle.hpp"

using namespace sluice::io;

namespace {

sluice::result<void> copy(const char* source, const char* destination) {
    auto from = file_handle::open({}, source);
    if (not from) return sluice::failure(from.error());
    auto to = file_handle::open({}, destination, mode::write, creation::always_new);
    if (not to) return sluice::failure(to.error());

    static std::array<std::byte, 65536> block;
    for (extent_type offset = 0;;) {
        const auto got = from->read(io_request<bytes_type>{block, offset});
        if (not got) return sluice::failure(got.error());
        if (got->empty()) break;  // the end of the file
        const auto put = to->write(io_request<const_bytes_type>{*got, offset});
        if (not put) return sluice::failure(put.error());
        offset += got->size();
    }
    if (auto durable = to->barrier(); not durable) return sluice::failure(durable.error());
    return to->close();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SOURCE DESTINATION\n", argv[0]);
        return 2;
    }
    const auto copied = copy(argv[1], argv[2]);
    if (not copied) std::fprintf(stderr, "%s: %s\n", argv[0], copied.error().message().c_str());
    return copied ? 0 : 1;
}
