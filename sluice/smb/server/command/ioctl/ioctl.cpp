#include "sluice/smb/server/command/ioctl/ioctl.hpp"

#include <algorithm>
#include <array>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

using wire::control_code;
using wire::nt_status;

namespace {

constexpr std::size_t reply_head_bytes = 48 + 8;  // and padding before the output

struct control_rule {
    control_code code;
    control_handler serve;
    enum class subject : std::uint8_t { server, pipe, file } of = subject::file;
    bool changes_file = false;
};

[[nodiscard]] constexpr control_rule file_change(control_code code, control_handler serve) noexcept {
    return {.code = code, .serve = serve, .changes_file = true};
}

constexpr std::array rules{
    control_rule{control_code::validate_negotiate_info, validate_negotiate, control_rule::subject::server},
    control_rule{control_code::query_network_interface_info, query_network_interfaces,
                 control_rule::subject::server},
    control_rule{control_code::dfs_get_referrals, get_dfs_referrals, control_rule::subject::server},
    control_rule{control_code::dfs_get_referrals_ex, get_dfs_referrals, control_rule::subject::server},
    control_rule{control_code::pipe_wait, wait_for_pipe, control_rule::subject::server},
    control_rule{control_code::pipe_transceive, transceive_pipe, control_rule::subject::pipe},
    control_rule{control_code::pipe_peek, peek_pipe, control_rule::subject::pipe},
    control_rule{control_code::lmr_request_resiliency, request_resiliency},
    control_rule{control_code::srv_request_resume_key, request_resume_key},
    file_change(control_code::srv_copychunk, copy_chunks),
    file_change(control_code::srv_copychunk_write, copy_chunks),
    file_change(control_code::duplicate_extents_to_file, duplicate_extents),
    file_change(control_code::duplicate_extents_to_file_ex, duplicate_extents),
    control_rule{control_code::offload_read, offload_read},
    file_change(control_code::offload_write, offload_write),
    file_change(control_code::set_sparse, set_sparse),
    file_change(control_code::set_zero_data, set_zero_data),
    control_rule{control_code::query_allocated_ranges, query_allocated_ranges},
    control_rule{control_code::query_file_regions, query_file_regions},
    file_change(control_code::file_level_trim, trim_file),
    control_rule{control_code::get_compression, get_compression},
    file_change(control_code::set_compression, set_compression),
    control_rule{control_code::get_object_id, get_object_id},
    control_rule{control_code::create_or_get_object_id, get_object_id},
    control_rule{control_code::get_ntfs_volume_data, get_ntfs_volume_data},
    control_rule{control_code::read_file_usn_data, read_file_usn_data},
    control_rule{control_code::srv_enumerate_snapshots, enumerate_snapshots},
    control_rule{control_code::refs_stream_snapshot_management, manage_stream_snapshots},
    control_rule{control_code::mark_handle, mark_handle},
    control_rule{control_code::get_reparse_point, get_reparse_point},
    file_change(control_code::set_reparse_point, set_reparse_point),
    file_change(control_code::delete_reparse_point, delete_reparse_point),
};

[[nodiscard]] const control_rule* rule_of(control_code code) noexcept {
    const auto* const found = std::ranges::find(rules, code, &control_rule::code);
    return found == rules.end() ? nullptr : found;
}

[[nodiscard]] nt_status check(const request& r, const wire::ioctl_args& args) noexcept {
    if (args.flags != wire::ioctl_flags::is_fsctl) return nt_status::not_supported;
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    const std::uint64_t received = std::max<std::uint64_t>(args.input_bytes_max, args.output_bytes_max);
    const std::uint64_t largest = std::max<std::uint64_t>(args.input.size(), received);
    if (args.input_bytes_max > bytes_max or args.output_bytes_max > bytes_max or not r.charge_covers(largest))
        return nt_status::invalid_parameter;
    return nt_status::success;
}

// Finds what the control is about, and whether it may be.
[[nodiscard]] nt_status find_subject(control& c, const control_rule* rule) noexcept {
    if (rule != nullptr and rule->of == control_rule::subject::server) {
        const bool names_none = c.args.file == wire::file_id_of_no_file;
        return names_none ? nt_status::success : nt_status::invalid_parameter;
    }
    c.file = c.r.find_open(c.args.file);
    if (c.file == nullptr) return nt_status::file_closed;
    if (rule == nullptr) return nt_status::invalid_device_request;
    const bool is_of_pipe = rule->of == control_rule::subject::pipe;
    if (is_of_pipe != c.file->is_pipe()) return nt_status::invalid_device_request;
    const bool is_refused = rule->changes_file and c.file->is_past();
    return is_refused ? nt_status::media_write_protected : nt_status::success;
}

}  // namespace

byte_writer* control::begin_output(std::size_t bytes_max) noexcept {
    output_.reset();
    memory_ = r.answer.buffers().take(bytes_max);
    if (not memory_) return nullptr;
    return &output_.emplace(mutable_bytes(memory_.bytes()));
}

nt_status control::reply_with_output() noexcept {
    const std::optional<mutable_bytes> output = output_ ? output_->finish() : mutable_bytes{};
    if (not output) return nt_status::insufficient_resources;  // more than the control had counted
    byte_writer* const body = r.begin_reply(reply_head_bytes + output->size());
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, wire::ioctl_reply{.code = args.code, .file = args.file, .output = *output});
    return nt_status::success;
}

io::task<nt_status> serve_ioctl(request& r) {
    const auto args = wire::decode_ioctl(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    control c(r, *args);
    const control_rule* const rule = rule_of(args->code);
    if (const nt_status refused = find_subject(c, rule); refused != nt_status::success) co_return refused;

    io::task<nt_status> serving = rule->serve(c);
    const nt_status status = co_await std::move(serving);
    if (status != nt_status::success and not c.has_output()) co_return status;
    const nt_status replied = c.reply_with_output();
    co_return replied == nt_status::success ? status : replied;
}

}  // namespace sluice::smb::server
