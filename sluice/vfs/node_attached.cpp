#include "sluice/vfs/node_attached.hpp"

namespace sluice::vfs {

result<std::vector<stream_info>> node_attached::streams() noexcept {
    return failure({EOPNOTSUPP, "list streams"});
}

result<node_ptr> node_attached::open_stream(const stream_request& /*wanted*/) noexcept {
    return failure({EOPNOTSUPP, "open stream"});
}

result<std::string> node_attached::read_link() noexcept {
    return failure({EINVAL, "read link"});
}

result<void> node_attached::become_link(std::string_view /*target*/) noexcept {
    return failure({EOPNOTSUPP, "become a link"});
}

}  // namespace sluice::vfs
