#include "sluice/vfs/node_attached.hpp"

#include "sluice/vfs/node_names.hpp"

namespace sluice::vfs {

result<std::vector<stream_info>> node_attached::streams() noexcept {
    return failure({EOPNOTSUPP, "list streams"});
}

result<metadata> node_attached::file_status() noexcept {
    return failure({EOPNOTSUPP, "find the file of a stream"});
}

result<node_ptr> node_attached::open_stream(const stream_request& /*wanted*/) noexcept {
    return failure({EOPNOTSUPP, "open stream"});
}

result<void> node_attached::remove_streams() noexcept {
    const auto all = streams();
    if (not all) return failure(all.error());
    for (const stream_info& each : *all) {
        const auto stream = open_stream({.name = each.name});
        if (not stream and stream.error() == std::errc::no_such_file_or_directory) continue;
        if (not stream) return failure(stream.error());
        const auto gone = remove(**stream);
        if (not gone and gone.error() != std::errc::no_such_file_or_directory) return gone;
    }
    return {};
}

result<std::string> node_attached::read_link() noexcept {
    return failure({EINVAL, "read link"});
}

result<void> node_attached::become_link(std::string_view /*target*/) noexcept {
    return failure({EOPNOTSUPP, "become a link"});
}

}  // namespace sluice::vfs
