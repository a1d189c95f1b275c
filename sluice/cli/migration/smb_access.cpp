#include "sluice/cli/migration/smb_access.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/cli/migration/smb_hosts.hpp"
#include "sluice/cli/migration/smb_values.hpp"

namespace sluice::cli {
namespace {

constexpr const char* incomplete = "elements of the list that are not converted: {}; complete {}";

// A list of users and groups, and the number of elements that name none.
struct user_names {
    std::vector<std::string> names{};
    std::size_t skipped = 0;
};

[[nodiscard]] user_names names_of(const smb_draft& share, const smb_parameter& given) {
    const auto text = smb_substituted(given.value, share.section.name);
    auto converted = converted_smb_value(text.value_or(given.value), smb_rule::users, setting_kind::list);
    ENSURE(converted.has_value(), "a list of users always has a value");
    return {.names = std::get<std::vector<std::string>>(std::move(converted->value)),
            .skipped = converted->skipped.size()};
}

[[nodiscard]] bool has_group(const std::vector<std::string>& names) noexcept {
    return std::ranges::any_of(names, [](const std::string& each) { return each.starts_with('@'); });
}

// Removes the names of `invalid users`. Returns false if the share is skipped.
[[nodiscard]] bool remove_invalid(smb_draft& to, const smb_parameter& given, bool is_restricted,
                                  std::vector<std::string>& valid) {
    const user_names invalid = names_of(to, given);
    if (not is_restricted) {
        to.lose(given, "list the users that have access in 'valid users' instead");
        return false;
    }
    if (invalid.skipped != 0 or has_group(invalid.names) or has_group(valid)) {
        to.lose(given, "a group can contain these users; list the users that have access in 'valid users'");
        return false;
    }
    std::erase_if(valid, [&](const std::string& name) {
        return std::ranges::any_of(invalid.names, [&](const std::string& each) {
            return equal_ignoring_case(std::string_view(each), std::string_view(name));
        });
    });
    if (valid.empty()) to.lose(given, "it excludes all of its users");
    return not valid.empty();
}

// The users that a writable share only lets read.
void apply_readers(smb_draft& to) {
    const smb_parameter* const readers = to.effective("readlist");
    if (readers == nullptr or readers->value.empty() or to.settings.contains("read-only")) return;
    const setting_record* const setting = to.setting_of(*row_of(share_rows(), "readlist"));
    const user_names list = names_of(to, *readers);
    const bool is_complete = setting != nullptr and list.skipped == 0 and not list.names.empty();
    if (is_complete) return to.set(setting->key, list.names);
    if (to.settings.contains("write-user")) return;  // the others can only read anyway
    to.set("read-only", true);
    to.note(smb_note_kind::none, *readers,
            "a part of the list is not converted, so that all users can only read; set read-only-user "
            "in place of read-only");
}

}  // namespace

void apply_smb_users(smb_draft& to) {
    const smb_parameter* const given = to.effective("validusers");
    const smb_parameter* const excluded = to.effective("invalidusers");
    const setting_record* const setting = to.setting_of(*row_of(share_rows(), "validusers"));
    const bool is_restricted = given != nullptr and not given->value.empty();
    std::vector<std::string> valid;
    if (is_restricted) {
        if (setting == nullptr) return to.lose(*given, "this version cannot restrict users");
        user_names list = names_of(to, *given);
        if (list.skipped != 0)
            to.note(smb_note_kind::none, *given, fmt::format(incomplete, list.skipped, setting->key));
        // Without any user, the share would be open to all.
        if (list.names.empty()) return to.lose(*given, "none of its users is known before a client connects");
        valid = std::move(list.names);
    }
    const bool has_excluded = excluded != nullptr and not excluded->value.empty();
    if (has_excluded and not remove_invalid(to, *excluded, is_restricted, valid)) return;
    if (is_restricted) to.set(setting->key, valid);
}

void apply_smb_writers(smb_draft& to) {
    if (not to.is_set("readonly", true)) return apply_readers(to);
    const smb_parameter* const writers = to.effective("writelist");
    const smb_row& row = *row_of(share_rows(), "writelist");
    const setting_record* const setting = to.setting_of(row);
    if (writers == nullptr or writers->value.empty()) return to.set("read-only", true);
    if (setting == nullptr) {
        to.note(smb_note_kind::none, *writers, std::string(row.advice));
        return to.set("read-only", true);
    }
    const user_names list = names_of(to, *writers);
    if (list.skipped != 0)
        to.note(smb_note_kind::none, *writers, fmt::format(incomplete, list.skipped, setting->key));
    if (list.names.empty()) return to.set("read-only", true);
    to.set(setting->key, list.names);
    apply_readers(to);
}

void apply_smb_encryption(smb_draft& to) {
    const smb_parameter* const given = to.effective("serversmbencrypt");
    if (given == nullptr or (not to.is_server() and to.is_of_server("serversmbencrypt"))) return;
    constexpr std::array<std::string_view, 5> required{"required", "mandatory", "force", "forced",
                                                       "enforced"};
    constexpr std::array<std::string_view, 5> optional{"default", "if_required", "auto", "enabled",
                                                       "disabled"};
    const std::string word = smb_word(given->value);
    if (std::ranges::find(required, word) != required.end()) {
        if (to.known.find("encrypt") == nullptr)
            return to.lose(*given, "this version cannot require encryption");
        return to.set("encrypt", true);
    }
    if (word == "desired")
        return to.note(smb_note_kind::none, *given, "clients decide; set encrypt to require it");
    if (not smb_boolean(word) and std::ranges::find(optional, word) == optional.end())
        to.lose(*given, "the value is unknown; use required, desired, if_required or off");
}

void apply_smb_hosts(smb_draft& to) {
    const smb_parameter* const allow = to.effective("hostsallow");
    const smb_parameter* const deny = to.effective("hostsdeny");
    const bool has_own_allow = to.is_server() or not to.is_of_server("hostsallow");
    const bool has_own_deny = to.is_server() or not to.is_of_server("hostsdeny");
    if ((allow == nullptr and deny == nullptr) or (not has_own_allow and not has_own_deny)) return;
    const smb_row& row = *row_of(share_rows(), "hostsallow");
    const setting_record* const allowed = to.setting_of(row);
    const setting_record* const denied = to.setting_of(*row_of(share_rows(), "hostsdeny"));
    const auto value = [](const smb_parameter* given) { return given == nullptr ? "" : given->value; };
    const smb_parameter& about = allow != nullptr and has_own_allow ? *allow
                                 : deny != nullptr                  ? *deny
                                                                    : *allow;
    if (allowed == nullptr or denied == nullptr) return to.lose(about, std::string(row.advice));
    // The server admits no host that its list does not have, so that only the names of others that
    // a share denies are of importance.
    const bool server_allows = not has_own_allow and not smb_list(value(allow)).empty();
    const smb_host_lists lists = converted_smb_hosts(has_own_allow ? value(allow) : "", value(deny));
    if (lists.not_denied != 0 and not server_allows)
        return to.lose(about, fmt::format("hosts that are denied access cannot be converted: {}; use "
                                          "addresses and networks, and EXCEPT once",
                                          lists.not_denied));
    if (not lists.allowed.empty()) to.set(allowed->key, lists.allowed);
    if (not lists.denied.empty()) to.set(denied->key, lists.denied);
    if (lists.not_allowed != 0)
        to.note(smb_note_kind::none, about, fmt::format(incomplete, lists.not_allowed, allowed->key));
    if (lists.denies_others)
        to.note(smb_note_kind::differs, about, "hosts that are in neither list have no access");
}

void check_smb_server(smb_draft& to) {
    if (const smb_parameter* const backend = to.effective("configbackend");
        backend != nullptr and smb_word(backend->value) != "file")
        to.lose(*backend, "the file is not in use; run 'testparm -s', and import its output");
    if (const smb_parameter* const root = to.effective("rootdirectory");
        root != nullptr and not root->value.empty() and root->value != "/")
        to.lose(*root, "all paths are below it; write them in full, and remove it");
    if (const smb_parameter* const logon = to.effective("ntlmauth"); logon != nullptr)
        smb_word(logon->value) == "disabled"
            ? to.lose(*logon, "it disables all logons that sluice has; keep Samba, or set it to ntlmv2-only")
        : smb_word(logon->value).starts_with("ntlmv1") or smb_word(logon->value) == "yes"
            ? to.note(smb_note_kind::none, *logon, "only NTLMv2 is accepted")
            : to.note(smb_note_kind::standard, *logon, "");
    const smb_parameter* const oldest = to.effective("serverminprotocol");
    if (oldest == nullptr) return;
    const std::string word = smb_word(oldest->value);
    if (word.starts_with("smb3"))
        to.note(smb_note_kind::none, *oldest, "clients can use SMB 2; set encrypt to require SMB 3");
    else if (word.starts_with("smb2") or word == "default")
        to.note(smb_note_kind::standard, *oldest, "");
    else
        to.note(smb_note_kind::none, *oldest, "SMB 1 is never available");
}

}  // namespace sluice::cli
