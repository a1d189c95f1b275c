#include "sluice/smb/wire/file/set_info.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/command/info/quota_handlers.hpp"
#include "sluice/smb/server/command/info/set_info_handlers.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"
#include "sluice/smb/server/operation/renaming.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"

namespace sluice::smb::server {

using wire::file_information_class;
using wire::nt_status;

namespace {

[[nodiscard]] nt_status check(const request& r, const wire::set_info_args& args) noexcept {
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    const bool fits = args.input.size() <= bytes_max and r.charge_covers(args.input.size());
    return fits ? nt_status::success : nt_status::invalid_parameter;
}

[[nodiscard]] nt_status change_pipe(const wire::set_info_args& args) noexcept {
    // Our pipes are of messages and never wait, whatever the client would like.
    if (file_information_class(args.information_class) != file_information_class::pipe)
        return nt_status::not_supported;
    return wire::decode_pipe_information(args.input) ? nt_status::success : nt_status::invalid_parameter;
}

[[nodiscard]] std::expected<rename_request, nt_status> naming_of(const wire::set_info_args& args) {
    const auto what = file_information_class(args.information_class);
    const bool is_link = what == file_information_class::link or what == file_information_class::link_ex;
    if (what == file_information_class::rename or what == file_information_class::link) {
        // The two have the same form.
        auto wish = wire::decode_rename_information(args.input);
        if (not wish) return std::unexpected(nt_status::invalid_parameter);
        return rename_request{
            .target = std::move(wish->target), .makes_link = is_link, .replaces = wish->replace_if_exists};
    }
    auto wish = wire::decode_rename_information_ex(args.input);
    if (not wish) return std::unexpected(nt_status::invalid_parameter);
    return rename_request{.target = std::move(wish->target),
                          .makes_link = is_link,
                          .replaces = wire::has(wish->flags, wire::rename_flags::replace_if_exists),
                          .is_posix = wire::has(wish->flags, wire::rename_flags::posix_semantics),
                          .ignores_read_only = wire::has(wish->flags, wire::rename_flags::ignore_read_only)};
}

[[nodiscard]] std::expected<wire::disposition_flags, nt_status> disposition_of(
    const wire::set_info_args& args) noexcept {
    if (file_information_class(args.information_class) == file_information_class::disposition_ex) {
        const auto wish = wire::decode_disposition_information_ex(args.input);
        if (not wish) return std::unexpected(nt_status::info_length_mismatch);
        return wish->flags;
    }
    const auto wish = wire::decode_disposition_information(args.input);
    if (not wish) return std::unexpected(nt_status::info_length_mismatch);
    return wish->delete_on_close ? wire::disposition_flags::delete_file : wire::disposition_flags::none;
}

// The check of a directory before its deletion. No name is created in it until the check ends.
class removal_check {
public:
    explicit removal_check(open& one) noexcept : one_(one) {}
    removal_check(const removal_check&) = delete;
    removal_check& operator=(const removal_check&) = delete;
    ~removal_check() {
        if (not one_.is_directory()) return;
        const file_section held(*one_.file);
        (void)end(held);
    }

    /// Begins to check a directory; nothing is to be done for a file, or a directory that another
    /// open has set to be deleted. FILE_CLOSED if the open has ended. If it returns PENDING,
    /// `blocked` waits, and then it is called again.
    [[nodiscard]] nt_status begin(waiter& blocked) noexcept {
        const file_section held(*one_.file);
        if (one_.in_file(held).is_ending) return nt_status::file_closed;
        open_protocol& protocol = one_.file->protocol(held);
        if (not one_.is_directory() or protocol.phase() == delete_phase::delete_pending)
            return nt_status::success;
        const bool is_blocked = protocol.begin_check(check_, blocked) == open_protocol::verdict::blocked;
        return is_blocked ? nt_status::pending : nt_status::success;
    }
    /// Ends it: the directory stays as it is. Returns false if its result is outdated: another open
    /// has set the directory to be deleted meanwhile, and taken that back.
    [[nodiscard]] bool end(const file_section& held) noexcept {
        open_protocol& protocol = one_.file->protocol(held);
        return protocol.end_check(check_, false) or not one_.is_directory() or
               protocol.phase() == delete_phase::delete_pending;
    }

private:
    open& one_;
    directory_check check_;
};

// Returns whether the file may be removed. Then the check continues.
[[nodiscard]] io::task<nt_status> check_removal(request& r, std::shared_ptr<open> one, removal_check& check,
                                                bool ignores_read_only) noexcept {
    for (unsigned waits = 0;; ++waits) {
        if (waits == limits::caching_waits_max) co_return nt_status::sharing_violation;
        one_shot_event<nt_status> woken(r.loop());
        waiting<file_state> blocked(*one->file, woken);
        const nt_status begun = check.begin(blocked.place());
        if (begun == nt_status::success) break;
        if (begun != nt_status::pending) co_return begun;
        (void)co_await r.wait(woken);
        if (r.interrupted()) co_return *r.interrupted();
    }
    co_return co_await r.call(*one, [&] { return may_remove(*one->node, ignores_read_only); });
}

// The last step of a disposition. Returns std::nullopt if another client caches the file's handle
// again, or the result of the check is outdated.
[[nodiscard]] std::optional<nt_status> set_deletion(const std::shared_ptr<open>& one, removal_check& check,
                                                    bool concerns_this_open) noexcept {
    const file_section held(*one->file);
    open_in_file& place = one->in_file(held);
    if (place.is_ending) return nt_status::file_closed;
    if (others_cache_handle(held, *one->file, one.get())) return std::nullopt;
    if (not check.end(held)) return std::nullopt;
    if (concerns_this_open) {
        place.deletes_on_close = true;
        record_state(held, *one);
        return nt_status::success;
    }
    one->file->set_delete_pending(held, one);
    record_states(held, *one->file);
    ENSURE(place.entry.is_inside(), "an open that has not ended deletes its file");
    end_watches_of_removed(held, *one->file);
    return nt_status::success;
}

[[nodiscard]] nt_status clear_deletion(open& one, bool concerns_this_open) noexcept {
    std::vector<std::shared_ptr<open>> unused;  // released after the section
    const file_section held(*one.file);
    open_in_file& place = one.in_file(held);
    if (place.is_ending) return nt_status::file_closed;
    if (concerns_this_open)
        place.deletes_on_close = false;
    else
        unused = one.file->clear_delete_pending(held);
    forget_removers(held, unused);
    record_states(held, *one.file);
    return nt_status::success;
}

// Sets whether a file is removed with its last open ([MS-FSA] 2.1.5.15.3). The file keeps its name
// until then, although POSIX semantics would remove it at once.
[[nodiscard]] io::task<nt_status> dispose(request& r, std::shared_ptr<open> one,
                                          wire::disposition_flags flags) noexcept {
    using wire::disposition_flags;
    if (not one->grants(wire::access_mask::delete_object)) co_return nt_status::access_denied;
    const bool concerns_this_open = wire::has(flags, disposition_flags::on_close);
    if (not wire::has(flags, disposition_flags::delete_file))
        co_return clear_deletion(*one, concerns_this_open);
    const bool ignores_read_only = wire::has(flags, disposition_flags::ignore_read_only);
    ENSURE(one->file != nullptr and r.loop().is_owner(), "a file is disposed of on the loop of the request");
    for (unsigned attempts = 0; attempts != limits::caching_waits_max; ++attempts) {
        removal_check check(*one);
        io::task<nt_status> checking = check_removal(r, one, check, ignores_read_only);
        if (const nt_status refused = co_await std::move(checking); refused != nt_status::success)
            co_return refused;
        io::task<caching_outcome> waiting = break_caches_for_name_change(r, *one->file, one.get());
        const caching_outcome outcome = co_await std::move(waiting);
        if (outcome == caching_outcome::cancelled) co_return r.wait_failure_status();
        if (outcome == caching_outcome::exhausted) break;
        // The result of the check may be outdated.
        if (outcome == caching_outcome::waited) continue;
        if (const auto done = set_deletion(one, check, concerns_this_open)) co_return *done;
    }
    co_return nt_status::sharing_violation;
}

[[nodiscard]] io::task<nt_status> change(request& r, std::shared_ptr<open> one,
                                         const wire::set_info_args& args) noexcept {
    switch (file_information_class(args.information_class)) {
        case file_information_class::rename:
        case file_information_class::rename_ex:
        case file_information_class::link:
        case file_information_class::link_ex: {
            auto wish = naming_of(args);
            if (not wish) co_return wish.error();
            io::task<nt_status> naming = give_name(r, one, *std::move(wish));
            const nt_status named = co_await std::move(naming);
            co_return named;
        }
        case file_information_class::disposition:
        case file_information_class::disposition_ex: {
            const auto flags = disposition_of(args);
            if (not flags) co_return flags.error();
            io::task<nt_status> disposing = dispose(r, one, *flags);
            const nt_status disposed = co_await std::move(disposing);
            co_return disposed;
        }
        default:
            co_return co_await change_file(r, one, args);
    }
}

// Labels, quotas and IDs of volumes are the administrator's. Other classes cannot be set at all
// ([MS-FSA] 2.1.5.16).
[[nodiscard]] nt_status change_volume(const wire::set_info_args& args) noexcept {
    using wire::filesystem_information_class;
    switch (filesystem_information_class(args.information_class)) {
        case filesystem_information_class::label:
        case filesystem_information_class::control:
        case filesystem_information_class::object_id:
            return nt_status::not_supported;
        default:
            return nt_status::invalid_info_class;
    }
}

// Returns the status of a change of a file in a snapshot. Its position and mode are those of the
// open. A new name would be on another volume, that of the present files.
[[nodiscard]] nt_status check_for_past(const wire::set_info_args& args) noexcept {
    if (args.type != wire::info_type::file) return nt_status::media_write_protected;
    switch (file_information_class(args.information_class)) {
        case file_information_class::position:
        case file_information_class::mode:
            return nt_status::success;
        case file_information_class::rename:
        case file_information_class::rename_ex:
        case file_information_class::link:
        case file_information_class::link_ex:
            return nt_status::not_same_device;
        default:
            return nt_status::media_write_protected;
    }
}

}  // namespace

io::task<nt_status> serve_set_info(request& r) {
    const auto args = wire::decode_set_info(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    const std::shared_ptr<open> one = r.find_open(args->file);
    if (one == nullptr) co_return nt_status::file_closed;
    if (one->is_past()) {
        if (const nt_status refused = check_for_past(*args); refused != nt_status::success) co_return refused;
    }
    nt_status status = nt_status::success;
    if (args->type == wire::info_type::file) {
        if (one->is_pipe()) {
            status = change_pipe(*args);
        } else {
            io::task<nt_status> change_task = change(r, one, *args);
            status = co_await std::move(change_task);
        }
    } else if (args->type == wire::info_type::security and not one->is_pipe()) {
        io::task<nt_status> change_task = change_security(r, *one, *args);
        status = co_await std::move(change_task);
    } else if (args->type == wire::info_type::file_system) {
        status = change_volume(*args);
    } else if (args->type == wire::info_type::quota and not one->is_pipe()) {
        io::task<nt_status> change_task = set_quotas(r, *args);
        status = co_await std::move(change_task);
    } else {
        status =
            args->type > wire::info_type::quota ? nt_status::invalid_parameter : nt_status::not_supported;
    }
    if (status != nt_status::success) co_return status;
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    encode(*body, wire::set_info_reply{});
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
