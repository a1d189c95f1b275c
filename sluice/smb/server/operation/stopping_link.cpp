#include "sluice/smb/server/operation/stopping_link.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/server/metadata/link_target.hpp"
#include "sluice/smb/server/operation/create_operation.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/message/error_response.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// Where each component ends.
[[nodiscard]] std::vector<std::size_t> ends_in(std::string_view path) {
    std::vector<std::size_t> ends;
    for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1))
        ends.push_back(at);
    ends.push_back(path.size());
    return ends;
}

[[nodiscard]] bool is_absence(const error& why) noexcept {
    return why == std::errc::no_link or why == std::errc::not_a_directory;
}

[[nodiscard]] std::string with_backslashes(std::string text) {
    std::ranges::replace(text, '/', '\\');
    return text;
}

}  // namespace

std::expected<stopping_link, nt_status> find_stopping_link(const accessor& by, std::string_view path,
                                                           vfs::follow_links last) noexcept {
    const std::unexpected none(nt_status::object_name_not_found);
    vfs::volume& volume = by.tree.volume();
    std::vector<std::size_t> ends = ends_in(path);
    if (last == vfs::follow_links::no) ends.pop_back();
    // By bisection: a path that leads to a file passes through directories only.
    const auto first = std::ranges::partition_point(ends, [&](std::size_t end) {
        return volume.find(path.substr(0, end), vfs::follow_links::yes).has_value();
    });
    if (first == ends.end()) return none;
    const std::string_view at = path.substr(0, *first);
    const auto link = volume.find(at, vfs::follow_links::no);
    if (not link or (*link)->kind() != vfs::node_kind::symlink) return none;
    const auto target_node = volume.find(at, vfs::follow_links::yes);
    if (target_node or not is_absence(target_node.error())) return none;
    if (not wire::has(rights_to(by, **link), wire::access_mask::read_attributes)) return none;
    const auto attached = vfs::attached_of(**link);
    if (not attached) return none;
    result<std::string> target = (*attached)->read_link();
    const std::string place = (*link)->path();
    const std::string_view directory = vfs::split_path(place).parent;
    if (not target or not stays_in_share(*target, directory)) return none;
    // Behind another link, `..` would lead a client to a directory next to that link.
    const bool is_there = equal_ignoring_case(vfs::split_path(at).parent, directory);
    if (not is_there and target->contains("..")) return none;
    ENSURE(not target->starts_with('/'), "a target in the share is relative");
    return stopping_link{.path_bytes = at.size(), .target = *std::move(target)};
}

std::vector<std::byte> symlink_error_data(const stopping_link& link, std::string_view path,
                                          bytes_view utf16) {
    ENSURE(link.path_bytes <= path.size(), "the link is in the path");
    const auto name = wire::utf8_of(utf16);
    const auto target = wire::utf16_of(with_backslashes(link.target));
    const std::string front = with_backslashes(std::string(path.substr(0, link.path_bytes)));
    if (not name or not target or not name->starts_with(front)) return {};
    const std::string_view rest = std::string_view(*name).substr(front.size());
    if (not rest.empty() and not rest.starts_with('\\') and not rest.starts_with(':')) return {};
    const auto rest_bytes = wire::utf16_bytes_of(rest);
    constexpr std::size_t fixed_bytes = 28;
    const bytes_view target_bytes = std::as_bytes(std::span(*target));
    if (not rest_bytes or *rest_bytes > std::numeric_limits<std::uint16_t>::max() or
        target_bytes.size() > wire::reparse_data_bytes_max / 2)
        return {};
    std::vector<std::byte> data(fixed_bytes + 2 * target_bytes.size());
    byte_writer writer(data);
    encode(writer, wire::symlink_error{.unparsed_path_bytes = static_cast<std::uint16_t>(*rest_bytes),
                                       .relative = true,
                                       .substitute_name = target_bytes,
                                       .print_name = target_bytes});
    return writer.finish() ? data : std::vector<std::byte>{};
}

// A link in the middle makes the path invalid, and one at the end stops the lookup.
io::task<nt_status> create_operation::status_for_client(nt_status why) noexcept {
    ENSURE(why != nt_status::success and fresh_ == nullptr, "a CREATE that failed has no open");
    const bool has_stopped = why == nt_status::stopped_on_symlink;
    if (not has_stopped and why != nt_status::object_path_not_found) co_return why;
    const auto link = co_await r_.call(
        domain_of_lookup(), [&] { return find_stopping_link(r_.accessor(), name_.path, links()); });
    if (r_.interrupted()) co_return *r_.interrupted();
    if (link) r_.error_data = symlink_error_data(*link, name_.path, args_.name);
    if (not r_.error_data.empty()) co_return nt_status::stopped_on_symlink;
    co_return has_stopped ? nt_status::object_name_not_found : why;
}

}  // namespace sluice::smb::server
