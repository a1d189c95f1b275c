#include "sluice/cli/smb/file_copier.hpp"

#include <cerrno>
#include <vector>

namespace sluice::cli {

using namespace smb::client;  // NOLINT: the names of one component

void file_copier::run(std::size_t count) {
    share_.run(for_each_at_once(share_, count, [this](std::size_t file) { return copy_or_complain(file); }));
    if (done_ != count)
        share_.fail(share_.url().path, "not everything was copied; --resume goes on where it ended");
}

io::task<void> file_copier::copy_or_complain(std::size_t file) noexcept {
    io::task<trouble> copying = copy(file);
    const trouble met = co_await std::move(copying);
    if (met)
        share_.complain(path_of(file), *met);
    else
        ++done_;
}

io::task<file_copier::trouble> file_copier::compare(remote_file& remote, io::file_handle& here,
                                                    std::uint64_t end, const char* if_shorter) noexcept {
    std::vector<std::byte> room(download_piece_bytes);
    const byte_taker take = [&](bytes_view bytes, std::uint64_t offset) -> result<void> {
        const auto read =
            here.read(io::io_request<io::bytes_type>{std::span(room).first(bytes.size()), offset});
        if (not read) return failure(read.error());
        if (bytes_view(*read) == bytes) return {};
        return failure({EILSEQ, "compare with the server's"});
    };
    io::task<transferred<std::uint64_t>> reading = download(remote, 0, end, take);
    const auto compared = co_await std::move(reading);
    if (not compared) co_return compared.error().message();
    if (*compared != end) co_return if_shorter;
    co_return std::nullopt;
}

}  // namespace sluice::cli
