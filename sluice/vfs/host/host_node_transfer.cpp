#include "sluice/io/path/directory_handle.hpp"
#include "sluice/vfs/host/host_node.hpp"
#include "sluice/vfs/host/host_transfer.hpp"

// The transfers of host_node.

namespace sluice::vfs {

io::task<result<std::size_t>> host_node::co_read(std::span<std::byte> into, std::uint64_t offset,
                                                 io::call_cancellation* by) noexcept {
    return co_read_file({.tree = tree_, .domain = domain(), .file = readable()}, into, offset, by);
}

io::task<result<void>> host_node::co_write(std::span<const std::byte> from, std::uint64_t offset,
                                           io::call_cancellation* by) noexcept {
    io::file_handle* const file = writable();
    return co_write_by(tree_, domain(), from.size(), by, [=] { return write_waiting(file, from, offset); });
}

io::task<result<void>> host_node::co_flush(io::call_cancellation* by) noexcept {
    co_return co_await domain().offload(tree_.multiplexer_here(), by, [this] { return flush(); });
}

result<void> host_node::flush() noexcept {
    const auto barrier_of = [](auto opened) -> result<void> {
        if (not opened) return failure(opened.error());
        const auto done = opened->barrier();
        if (not done) return failure(done.error());
        return {};
    };
    if (io::file_handle* const file = host_file(); file != nullptr) {
        const auto done = file->barrier();
        if (not done) return failure(done.error());
        return {};
    }
    const io::descriptor_path itself(held().descriptor());
    if (kind() == node_kind::directory) return barrier_of(io::directory_handle::open({}, itself.c_str()));
    if (kind() != node_kind::file) return {};  // nothing but a name
    return barrier_of(io::file_handle::open({}, itself.c_str(), io::mode::read));
}

}  // namespace sluice::vfs
