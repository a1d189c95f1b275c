#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_lsa.hpp"

// Names of SIDs, and SIDs of names: [MS-LSAT] 3.1.4.

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t no_relative_id = 0xFFFFFFFF;
constexpr std::uint32_t no_domain = 0xFFFFFFFF;
// The scope of a search, LSAP_LOOKUP_LEVEL. This server knows its own accounts only, so that all
// levels find the same.
constexpr std::uint16_t level_min = 1;
constexpr std::uint16_t level_max = 7;

// The domains to which results refer by their number.
class referenced_domains {
public:
    // Complexity: logarithmic in the domains. The accounts of users have domains of their own.
    std::uint32_t number_of(const rpc_domain& one) {
        const auto next = static_cast<std::uint32_t>(domains_.size());
        const auto [known, is_new] = numbers_.try_emplace({text_of(one.id), one.name}, next);
        if (is_new) domains_.push_back(one);
        ENSURE(numbers_.size() == domains_.size(), "each domain has a number");
        return known->second;
    }

    // Writes a pointer to LSAPR_REFERENCED_DOMAIN_LIST, 2.2.12.
    void put(ndr_writer& out) const {
        const auto count = static_cast<std::uint32_t>(domains_.size());
        out.pointer(true);
        out.u32(count);
        out.pointer(count != 0);
        out.u32(count);
        if (count == 0) return;
        out.u32(count);
        for (const rpc_domain& one : domains_) {
            out.counted_text_head(one.name);
            out.pointer(true);
        }
        for (const rpc_domain& one : domains_) {
            out.counted_text(one.name);
            out.sid_referent(one.id);
        }
    }

private:
    std::vector<rpc_domain> domains_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;  // by SID and name
};

// The result for one name or SID, with the number of its domain.
struct found_account {
    std::optional<rpc_account> account;
    std::uint32_t domain = no_domain;
};

class findings {
public:
    void add(std::optional<rpc_account> account) {
        const std::uint32_t domain = account ? domains_.number_of(account->domain) : no_domain;
        if (account) ++mapped_;
        all_.push_back({.account = std::move(account), .domain = domain});
    }
    [[nodiscard]] const std::vector<found_account>& all() const noexcept { return all_; }
    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(all_.size()); }

    void put_domains(ndr_writer& out) const { domains_.put(out); }
    void put_end(ndr_writer& out) const {
        out.u32(mapped_);
        if (mapped_ == all_.size()) return put_status(out, nt_status::success);
        put_status(out, mapped_ == 0 ? nt_status::none_mapped : nt_status::some_not_mapped);
    }

private:
    std::vector<found_account> all_;
    referenced_domains domains_;
    std::uint32_t mapped_ = 0;
};

// Returns the number of the last subauthority; that of a domain has no meaning.
std::uint32_t relative_id_of(const found_account& one) noexcept {
    if (!one.account or one.account->use == sid_use::domain) return no_relative_id;
    const auto numbers = one.account->id.sub_authorities();
    return numbers.empty() ? no_relative_id : numbers.back();
}

std::uint16_t use_of(const found_account& one) noexcept {
    return static_cast<std::uint16_t>(one.account ? one.account->use : sid_use::unknown);
}

// Consumes what follows the names or SIDs: no results yet, the level and the count, and in the
// newer forms the options and the revision. Returns the level.
std::optional<std::uint16_t> take_end(ndr_reader& in, bool has_options) noexcept {
    const auto entries = in.u32();
    const auto array = in.pointer();
    if (!entries or !array or *entries != 0 or *array) return std::nullopt;
    const auto level = in.u16();
    if (!level or !in.u32()) return std::nullopt;
    if (has_options and (!in.u32() or !in.u32())) return std::nullopt;
    return level;
}

std::optional<std::vector<std::string>> take_names(ndr_reader& in) {
    const auto count = in.u32();
    const ndr_level inside(in);
    if (!inside or !count or !in.array_count(*count)) return std::nullopt;
    return take_counted_texts(in, *count);
}

// Returns the status of a lookup by a policy: success if it is carried out; std::nullopt if the
// handle is not one of a policy.
std::optional<nt_status> begin_lookup(const rpc_handle_table& policies, const rpc_handle& policy,
                                      std::uint16_t level) noexcept {
    const auto status = use_of_policy(policies, policy, policy_lookup_names);
    if (status != nt_status::success) return status;
    return level >= level_min and level <= level_max ? nt_status::success : nt_status::invalid_parameter;
}

void refuse(ndr_writer& out, nt_status why) {
    out.pointer(false);  // domains
    out.u32(0);
    out.pointer(false);
    out.u32(0);
    put_status(out, why);
}

}  // namespace

std::optional<std::vector<std::string>> take_counted_texts(ndr_reader& in, std::uint32_t count) {
    ENSURE(count <= ndr_limits().elements_max, "the caller has checked the number of elements");
    std::vector<ndr_counted_text> heads;
    for (std::uint32_t left = count; left != 0; --left) {
        const auto head = in.counted_text_head();
        if (!head) return std::nullopt;
        heads.push_back(*head);
    }
    std::vector<std::string> texts;
    for (const ndr_counted_text& head : heads) {
        auto text = in.counted_text(head);
        if (!text) return std::nullopt;
        texts.push_back(std::move(*text));
    }
    return texts;
}

std::optional<std::vector<sid>> take_sid_array(ndr_reader& in) {
    const auto entries = in.u32();
    const auto array = in.pointer();
    std::vector<sid> sids;
    if (!entries or !array or *array != (*entries != 0)) return std::nullopt;
    if (!*array) return sids;
    const ndr_level inside(in);
    if (!inside or !in.array_count(*entries)) return std::nullopt;
    for (std::uint32_t left = *entries; left != 0; --left) {
        const auto present = in.pointer();
        if (!present or !*present) return std::nullopt;
    }
    for (std::uint32_t left = *entries; left != 0; --left) {
        const auto who = in.sid_referent();
        if (!who) return std::nullopt;
        sids.push_back(*who);
    }
    return sids;
}

rpc_fault look_up_sids(rpc_host& host, const rpc_handle_table& policies, sid_lookup form, ndr_reader& in,
                       ndr_writer& out) {
    const bool has_flags = form == sid_lookup::with_flags;
    const auto policy = take_rpc_handle(in);
    const auto sids = policy ? take_sid_array(in) : std::nullopt;
    const auto level = sids ? take_end(in, has_flags) : std::nullopt;
    if (!level) return rpc_fault::bad_stub_data;
    const auto status = begin_lookup(policies, *policy, *level);
    if (!status) return rpc_fault::context_mismatch;
    if (*status != nt_status::success) return refuse(out, *status), rpc_fault::none;

    findings found;
    for (const sid& who : *sids)
        found.add(host.account_of(who));
    found.put_domains(out);
    std::vector<std::string> names;
    for (std::size_t i = 0; i != sids->size(); ++i) {
        const auto& account = found.all()[i].account;
        names.push_back(account ? account->name : text_of((*sids)[i]));
    }
    out.u32(found.count());
    out.pointer(found.count() != 0);
    if (found.count() != 0) out.u32(found.count());
    for (std::size_t i = 0; i != names.size(); ++i) {
        out.align(4);
        out.u16(use_of(found.all()[i]));
        out.counted_text_head(names[i]);
        out.u32(found.all()[i].domain);
        if (has_flags) out.u32(0);
    }
    for (const std::string& name : names)
        out.counted_text(name);
    found.put_end(out);
    return rpc_fault::none;
}

rpc_fault look_up_names(rpc_host& host, const rpc_handle_table& policies, name_lookup form, ndr_reader& in,
                        ndr_writer& out) {
    const auto policy = take_rpc_handle(in);
    const auto names = policy ? take_names(in) : std::nullopt;
    const auto level = names ? take_end(in, form != name_lookup::plain) : std::nullopt;
    if (!level) return rpc_fault::bad_stub_data;
    const auto status = begin_lookup(policies, *policy, *level);
    if (!status) return rpc_fault::context_mismatch;
    if (*status != nt_status::success) return refuse(out, *status), rpc_fault::none;

    findings found;
    for (const std::string& name : *names)
        found.add(host.account_named(name));
    found.put_domains(out);
    out.u32(found.count());
    out.pointer(found.count() != 0);
    if (found.count() != 0) out.u32(found.count());
    for (const found_account& one : found.all()) {
        out.align(4);
        out.u16(use_of(one));
        if (form == name_lookup::with_sids)
            out.pointer(one.account.has_value());
        else
            out.u32(relative_id_of(one));
        out.u32(one.domain);
        if (form != name_lookup::plain) out.u32(0);
    }
    if (form == name_lookup::with_sids) {
        for (const found_account& one : found.all())
            if (one.account) out.sid_referent(one.account->id);
    }
    found.put_end(out);
    return rpc_fault::none;
}

}  // namespace sluice::smb::wire
