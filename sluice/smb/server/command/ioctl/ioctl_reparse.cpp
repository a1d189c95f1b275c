// Reparse points, of which a volume has one kind: symbolic links.

#include <algorithm>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/link_target.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

constexpr std::size_t buffer_bytes_max = 8 + wire::reparse_data_bytes_max;

[[nodiscard]] std::string with_separators(std::string path, char from, char to) {
    std::ranges::replace(path, from, to);
    return path;
}

[[nodiscard]] nt_status check_writer(const open& of) noexcept {
    return wire::has_any(of.access, access_mask::write_data | access_mask::write_attributes)
               ? nt_status::success
               : nt_status::access_denied;
}

// To become a link, or to stop being one, makes the file another inode. Its state goes along; other
// opens of the old inode, writes to it, and its share-mode lock bytes would stay with that inode.
// So no other CREATE may be in progress.
[[nodiscard]] io::task<nt_status> become_link(control& c, std::string target) noexcept {
    request& r = c.r;
    file_table& files = r.host().files;
    file_state& file = *c.file->file;
    vfs::node& node = *c.file->node;
    if (file.has_peers()) co_return nt_status::not_supported;
    vfs::volume& volume = r.files().volume();
    create_round alone(r.host().names_of(volume, is_beyond_mount(volume, node)), r.loop());
    if (not alone.enter_alone()) {
        (void)co_await r.wait(alone.entered());
        if (not alone.is_inside()) co_return *r.interrupted();
    }
    {
        const file_section held(file);
        const open_in_file& place = c.file->in_file(held);
        if (place.is_ending) co_return nt_status::file_closed;
        if (place.pending_writes != 0) co_return nt_status::sharing_violation;
        if (file.opens(held).size() != 1 or files.has_open_streams(held, file))
            co_return nt_status::sharing_violation;
    }
    own_change seen(r.host());
    const nt_status made = co_await call_in_turn(r, *c.file, [&] {
        const auto attached = vfs::attached_of(node);
        if (not attached) return status_of(attached.error());
        seen.begin(node);
        const result<void> done = (*attached)->become_link(target);
        seen.end(done.has_value(), &node);
        return done ? nt_status::success : status_of(done.error());
    });
    if (made == nt_status::success) seen.break_leases(*c.file);
    const file_section held(file);
    files.change_key(held, file, node.key());
    co_return made;
}

}  // namespace

io::task<nt_status> get_reparse_point(control& c) {
    if (c.file->node->kind() != vfs::node_kind::symlink) co_return nt_status::not_a_reparse_point;
    using asked = std::expected<std::string, nt_status>;
    asked target = co_await c.r.call(*c.file, [&]() -> asked {
        const auto attached = vfs::attached_of(*c.file->node);
        if (not attached) return std::unexpected(status_of(attached.error()));
        result<std::string> read = (*attached)->read_link();
        if (not read) return std::unexpected(status_of(read.error()));
        return *std::move(read);
    });
    if (not target) co_return target.error();
    const bool is_relative = not target->starts_with('/');
    const std::string shown = with_separators(*std::move(target), '/', '\\');
    pool_buffer memory = c.r.answer.buffers().take(buffer_bytes_max);
    if (not memory) co_return nt_status::insufficient_resources;
    byte_writer writer(memory.bytes());
    const auto encoded =
        encode(writer, wire::reparse_symlink{.substitute = shown, .print = shown, .relative = is_relative});
    const auto point = writer.finish();
    if (not encoded or not point) co_return nt_status::io_reparse_data_invalid;
    if (point->size() > c.args.output_bytes_max) co_return nt_status::buffer_too_small;
    byte_writer* const output = c.begin_output(point->size());
    if (output == nullptr) co_return nt_status::insufficient_resources;
    output->put_bytes(*point);
    co_return nt_status::success;
}

io::task<nt_status> set_reparse_point(control& c) {
    if (const nt_status refused = check_writer(*c.file); refused != nt_status::success) co_return refused;
    const auto point = wire::decode_reparse_point(c.args.input);
    if (not point) co_return nt_status::io_reparse_data_invalid;
    const auto* const link = std::get_if<wire::reparse_symlink>(&*point);
    if (link == nullptr) co_return nt_status::io_reparse_tag_not_handled;
    const std::string target = with_separators(link->substitute, '\\', '/');
    const std::string path = c.file->node->path();
    if (not link->relative or not stays_in_share(target, vfs::split_path(path).parent))
        co_return nt_status::io_reparse_data_invalid;
    co_return co_await become_link(c, target);
}

io::task<nt_status> delete_reparse_point(control& c) {
    if (const nt_status refused = check_writer(*c.file); refused != nt_status::success) co_return refused;
    if (c.file->node->kind() != vfs::node_kind::symlink) co_return nt_status::not_a_reparse_point;
    const auto tag = c.args.input.take<le32>();
    if (not tag) co_return nt_status::io_reparse_data_invalid;
    if (tag->value() != wire::reparse_tag_symlink) co_return nt_status::io_reparse_tag_mismatch;
    co_return co_await become_link(c, {});
}

}  // namespace sluice::smb::server
