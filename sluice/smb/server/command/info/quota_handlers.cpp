#include "sluice/smb/server/command/info/quota_handlers.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "sluice/smb/server/command/info/file_information.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_quota.hpp"

namespace sluice::smb::server {

using wire::nt_status;
using wire::quota_information;

namespace {

// A call that finds accounts may ask another host (LDAP).
constexpr vfs::waits_for_calls finds_accounts = vfs::waits_for_calls::yes;
constexpr std::size_t reply_fixed_bytes = 16;
constexpr std::uint64_t after_the_last = std::uint64_t{std::numeric_limits<std::uint32_t>::max()} + 1;

// The numbers on the host of the users that SIDs name. Values only, so that calls of the file
// system can use them: to find an account may block.
class quota_users {
public:
    explicit quota_users(const request& r)
        : own_(sid_of(r.session->user)),
          names_(r.host().user_names.current()),
          account_of_(r.host().configuration().account_of) {
        if (const auto& acts_as = r.tree->volume().identity().acts_as) acting_ = acts_as->id;
    }

    /// Returns whether the SID is the caller's.
    [[nodiscard]] bool is_own(const wire::sid& who) const {
        return who == own_ or (acting_ and who == wire::sid_of_unix_user(*acting_));
    }
    [[nodiscard]] const wire::sid& own() const noexcept { return own_; }
    /// Returns std::nullopt for an unknown SID. Without impersonation, all users of the server have
    /// the number of its account. Blocks: for the accounts of the host.
    [[nodiscard]] std::optional<std::uint32_t> number_of(const wire::sid& who) const {
        if (who == own_) return acting_;
        const auto parts = who.sub_authorities();
        if (parts.size() == 2 and who == wire::sid_of_unix_user(parts[1])) return parts[1];
        const auto known = names_->by_sid.find(wire::text_of(who));
        if (known == names_->by_sid.end()) return std::nullopt;
        if (not account_of_) return acting_;
        const std::optional<vfs::unix_account> account = account_of_(known->second);
        return account ? std::optional(account->user_id) : std::nullopt;
    }

private:
    wire::sid own_;
    std::shared_ptr<const user_names::table> names_;
    const std::function<std::optional<vfs::unix_account>(const std::string&)>& account_of_;
    std::optional<std::uint32_t> acting_;
};

[[nodiscard]] quota_information described(const vfs::user_quota& from, const wire::sid& user) noexcept {
    return {.used_bytes = from.used_bytes,
            .threshold_bytes = from.soft_limit_bytes.value_or(quota_information::unlimited),
            .limit_bytes = from.hard_limit_bytes.value_or(quota_information::unlimited),
            .user = user};
}

using listed = std::expected<std::vector<quota_information>, nt_status>;

// A user without a quota has one of zeros ([MS-SMB2] 3.3.5.20.4).
[[nodiscard]] listed quotas_of(vfs::volume_quotas& quotas, const quota_users& users,
                               std::span<const wire::sid> asked) {
    std::vector<quota_information> found;
    ENSURE(asked.size() <= limits::quota_users_max, "the decoder bounds the users");
    for (const wire::sid& each : asked) {
        found.push_back({.threshold_bytes = 0, .limit_bytes = 0, .user = each});
        const auto number = users.number_of(each);
        if (not number) continue;
        const result<vfs::user_quota> its = quotas.of(*number);
        if (not its) return std::unexpected(status_of(its.error()));
        found.back() = described(*its, each);
    }
    return found;
}

[[nodiscard]] listed quotas_from(vfs::volume_quotas& quotas, std::uint64_t from, std::size_t entries_max) {
    std::vector<quota_information> found;
    while (from < after_the_last and found.size() != entries_max) {
        const auto its = quotas.next(static_cast<std::uint32_t>(from));
        if (not its) return std::unexpected(status_of(its.error()));
        if (not*its) break;
        ENSURE((*its)->user >= from, "the list of quotas ascends");
        found.push_back(described(**its, wire::sid_of_unix_user((*its)->user)));
        from = std::uint64_t{(*its)->user} + 1;
    }
    return found;
}

[[nodiscard]] nt_status reply_with_quotas(request& r, const std::vector<quota_information>& found,
                                          std::uint32_t bytes_max, std::size_t& count) {
    if (found.empty()) return nt_status::no_more_entries;
    std::vector<std::byte> room(std::min<std::size_t>(bytes_max, information_bytes_max));
    const bytes_view output = wire::encode_quotas(room, found, count);
    if (count == 0) return nt_status::buffer_too_small;
    byte_writer* const body = r.begin_reply(reply_fixed_bytes + output.size());
    if (body == nullptr) return nt_status::insufficient_resources;
    encode(*body, wire::query_info_reply{.output = output});
    return nt_status::success;
}

[[nodiscard]] io::task<nt_status> query_named_quotas(request& r, vfs::volume_quotas& quotas,
                                                     const wire::quota_query& asked,
                                                     std::uint32_t bytes_max) noexcept {
    const quota_users users(r);
    ENSURE(not asked.users.empty(), "the query names users");
    const std::span named = std::span(asked.users).first(asked.wants_one ? 1 : asked.users.size());
    const bool are_own =
        std::ranges::all_of(named, [&](const wire::sid& each) { return users.is_own(each); });
    if (not are_own and not r.host().administrators.contain(r.host().accounts(), r.session->user))
        co_return nt_status::access_denied;
    const listed found = co_await r.call(
        r.tree->volume().domain(), [&] { return quotas_of(quotas, users, named); }, finds_accounts);
    if (not found) co_return found.error();
    std::size_t count = 0;
    const nt_status replied = reply_with_quotas(r, *found, bytes_max, count);
    const bool is_cut = replied == nt_status::success and count != found->size();
    co_return is_cut ? nt_status::buffer_overflow : replied;
}

// The position in the list of quotas at which a query continues.
[[nodiscard]] std::uint64_t position_of(const open& one, const wire::quota_query& asked) noexcept {
    return asked.restarts ? 0 : one.next_quota.load(std::memory_order_relaxed);
}

// Others than administrators get a list with one entry.
[[nodiscard]] io::task<nt_status> list_own_quota(request& r, open& one, vfs::volume_quotas& quotas,
                                                 const wire::quota_query& asked,
                                                 std::uint32_t bytes_max) noexcept {
    if (position_of(one, asked) != 0 or asked.after) co_return nt_status::no_more_entries;
    const quota_users users(r);
    const std::vector<wire::sid> own{users.own()};
    const listed found =
        co_await r.call(r.tree->volume().domain(), [&] { return quotas_of(quotas, users, own); });
    if (not found) co_return found.error();
    std::size_t count = 0;
    const nt_status replied = reply_with_quotas(r, *found, bytes_max, count);
    if (replied == nt_status::success) one.next_quota.store(after_the_last, std::memory_order_relaxed);
    co_return replied;
}

[[nodiscard]] io::task<nt_status> list_quotas(request& r, open& one, vfs::volume_quotas& quotas,
                                              const wire::quota_query& asked,
                                              std::uint32_t bytes_max) noexcept {
    const quota_users users(r);
    const std::uint64_t position = position_of(one, asked);
    const std::size_t entries_max = asked.wants_one ? 1 : limits::quota_list_entries_max;
    const auto list = [&]() -> listed {
        if (not asked.after) return quotas_from(quotas, position, entries_max);
        const auto number = users.number_of(*asked.after);
        if (not number) return std::unexpected(nt_status::invalid_sid);
        return quotas_from(quotas, std::uint64_t{*number} + 1, entries_max);
    };
    const listed found = co_await r.call(r.tree->volume().domain(), list, finds_accounts);
    if (not found) co_return found.error();
    std::size_t count = 0;
    const nt_status replied = reply_with_quotas(r, *found, bytes_max, count);
    if (replied == nt_status::success) {
        const std::uint32_t last = found->at(count - 1).user.sub_authorities().back();
        one.next_quota.store(std::uint64_t{last} + 1, std::memory_order_relaxed);
    }
    co_return replied;
}

// Checks an entry that a client sets, [MS-FSA] 2.1.5.22. Returns the limits in the host's form.
[[nodiscard]] std::expected<vfs::user_quota, nt_status> limits_in(const quota_information& wanted) noexcept {
    // The kernel counts in blocks of 1 KiB, and rejects more bytes than this.
    constexpr std::uint64_t bytes_max = std::numeric_limits<std::int64_t>::max() - 1023;
    const bool is_deleted = wanted.limit_bytes == quota_information::deleted;
    const bool has_limit = wanted.limit_bytes != quota_information::unlimited and not is_deleted;
    const bool has_threshold = wanted.threshold_bytes != quota_information::unlimited and not is_deleted;
    // Administrators cannot be limited.
    if (wanted.user == wire::sid_administrators and has_limit)
        return std::unexpected(nt_status::access_denied);
    if ((has_limit and wanted.limit_bytes > bytes_max) or
        (has_threshold and wanted.threshold_bytes > bytes_max))
        return std::unexpected(nt_status::invalid_parameter);
    vfs::user_quota limits;
    if (has_limit) limits.hard_limit_bytes = wanted.limit_bytes;
    if (has_threshold) limits.soft_limit_bytes = wanted.threshold_bytes;
    // XFS would ignore both limits in silence.
    if (has_limit and has_threshold)
        limits.soft_limit_bytes = std::min(wanted.threshold_bytes, wanted.limit_bytes);
    return limits;
}

// Stops at the first that fails.
[[nodiscard]] nt_status apply(vfs::volume_quotas& quotas, const quota_users& users,
                              const std::vector<quota_information>& wanted) {
    for (const quota_information& each : wanted) {
        auto limits = limits_in(each);
        if (not limits) return limits.error();
        if (each.user == wire::sid_administrators) continue;
        const auto number = users.number_of(each.user);
        if (not number) return nt_status::none_mapped;
        // The kernel does not limit root, and XFS takes its limits for the defaults of all users.
        if (*number == 0 and (limits->hard_limit_bytes or limits->soft_limit_bytes))
            return nt_status::access_denied;
        limits->user = *number;
        if (const auto done = quotas.set(*limits); not done) return status_of(done.error());
    }
    return nt_status::success;
}

}  // namespace

io::task<nt_status> query_quotas(request& r, open& one, const wire::query_info_args& args) noexcept {
    if (one.is_pipe()) co_return nt_status::not_supported;
    vfs::volume& volume = r.tree->volume();
    vfs::volume_quotas* const quotas = volume.quotas();
    if (quotas == nullptr) co_return nt_status::not_supported;
    const auto asked = wire::decode_quota_query(args.input, limits::quota_users_max);
    if (not asked) co_return nt_status::invalid_parameter;
    if (not asked->users.empty()) {
        io::task<nt_status> querying = query_named_quotas(r, *quotas, *asked, args.output_bytes_max);
        co_return co_await std::move(querying);
    }
    if (r.host().administrators.contain(r.host().accounts(), r.session->user)) {
        io::task<nt_status> listing = list_quotas(r, one, *quotas, *asked, args.output_bytes_max);
        co_return co_await std::move(listing);
    }
    io::task<nt_status> listing = list_own_quota(r, one, *quotas, *asked, args.output_bytes_max);
    co_return co_await std::move(listing);
}

io::task<nt_status> set_quotas(request& r, const wire::set_info_args& args) noexcept {
    vfs::volume& volume = r.tree->volume();
    vfs::volume_quotas* const quotas = volume.quotas();
    if (quotas == nullptr) co_return nt_status::not_supported;
    const bool may_write = wire::has(r.tree->access_max, wire::access_mask::write_data);
    if (not may_write or not r.host().administrators.contain(r.host().accounts(), r.session->user))
        co_return nt_status::access_denied;
    const auto wanted = wire::decode_quotas(args.input, limits::quota_users_max);
    if (not wanted or wanted->empty()) co_return nt_status::invalid_parameter;
    const quota_users users(r);
    co_return co_await r.call(
        volume.domain(), [&] { return apply(*quotas, users, *wanted); }, finds_accounts);
}

}  // namespace sluice::smb::server
