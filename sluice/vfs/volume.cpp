#include "sluice/vfs/volume.hpp"

#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

result<found_node> with_status(result<node_ptr> found) noexcept {
    if (not found) return failure(found.error());
    const auto status = (*found)->status();
    if (not status) return failure(status.error());
    return found_node{.node = *std::move(found), .status = *status};
}

}  // namespace

volume::volume() : domain_(std::make_shared<fs_domain>(fs_domain_options{})) {}

result<found_node> volume::find_with_status(std::string_view path, follow_links links, data_access,
                                            name_match) noexcept {
    return with_status(find(path, links));
}

result<found_node> volume::find_directory(std::string_view path) noexcept {
    auto found = find_with_status(path, follow_links::yes, {}, name_match::any_case);
    if (found and found->status.kind != node_kind::directory)
        return failure(error::with_path(ENOTDIR, "find", path));
    return found;
}

result<found_node> volume::create_in(node& directory, std::string_view name,
                                     const creation_request& wanted) noexcept {
    if (const auto valid = check_name(name); not valid) return failure(valid.error());
    return with_status(create(join_path(directory.path(), name), wanted));
}

}  // namespace sluice::vfs
