#include "sluice/cli/smb/remote_removal.hpp"

namespace sluice::cli {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::create_options;

// Returns why an object is not the one that was listed.
[[nodiscard]] std::optional<std::string> difference_of(const file_status& listed, const file_status& now) {
    if (is_link(now) and not is_link(listed))
        return "is a link of the server, so it is not removed; use 'sluice rm' to remove the link";
    const bool is_same_kind = is_link(listed) == is_link(now) and is_directory(listed) == is_directory(now);
    const bool has_content = not is_link(now) and not is_directory(now);
    const bool is_same_content = listed.end_of_file_bytes == now.end_of_file_bytes and
                                 listed.last_write_time == now.last_write_time and
                                 listed.change_time == now.change_time;
    if (is_same_kind and (not has_content or is_same_content)) return std::nullopt;
    return "was changed, so it is not removed";
}

}  // namespace

io::task<std::optional<std::string>> remove_unchanged(tree& in, const remote_entry& listed) noexcept {
    // No other program may write to it while it is compared and removed.
    const open_options how{
        .access = smb::wire::access_mask::delete_object | smb::wire::access_mask::read_attributes,
        .shares = smb::wire::share_access::read,
        .options = create_options::open_reparse_point};
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(listed.path, how);
    const auto opened = co_await std::move(opening);
    if (not opened) co_return opened.error().of_step("remove").message();
    std::optional<std::string> met = difference_of(listed.status, (*opened)->status());
    if (not met) {
        io::task<outcome<void>> removing = (*opened)->delete_on_close();
        const auto removed = co_await std::move(removing);
        if (not removed) met = removed.error().of_step("remove").message();
    }
    io::task<outcome<file_status>> close_task = (*opened)->co_close();
    const auto closed = co_await std::move(close_task);
    if (not met and not closed) met = closed.error().message();
    co_return met;
}

io::task<std::optional<std::string>> why_not_movable(tree& in, std::string path) noexcept {
    const open_options how{.access = smb::wire::access_mask::read_attributes,
                           .shares = smb::wire::share_access::read | smb::wire::share_access::write |
                                     smb::wire::share_access::remove,
                           .options = create_options::open_reparse_point};
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(std::move(path), how);
    const auto opened = co_await std::move(opening);
    if (not opened) co_return opened.error().message();
    std::optional<std::string> met;
    if (is_link((*opened)->status())) {
        met = "is a link, which cannot be moved to another share; nothing was moved";
    } else {
        io::task<outcome<bool>> asking = (*opened)->co_has_named_streams();
        const auto has_streams = co_await std::move(asking);
        if (not has_streams)
            met = has_streams.error().message();
        else if (*has_streams)
            met =
                "has named streams, which a copy would not have; nothing was moved: use 'sluice cp', "
                "then 'sluice rm'";
    }
    io::task<outcome<file_status>> close_task = (*opened)->co_close();
    (void)co_await std::move(close_task);
    co_return met;
}

}  // namespace sluice::cli
