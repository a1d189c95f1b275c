#include "sluice/cli/migration/smb_import.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/migration/smb_access.hpp"
#include "sluice/cli/migration/smb_draft.hpp"
#include "sluice/cli/migration/smb_homes.hpp"
#include "sluice/cli/migration/smb_hosts.hpp"
#include "sluice/cli/migration/smb_note.hpp"
#include "sluice/cli/migration/smb_recycle.hpp"
#include "sluice/cli/migration/smb_rows.hpp"
#include "sluice/cli/migration/smb_values.hpp"

namespace sluice::cli {
namespace {

// Reports a parameter whose setting does not exist, or cannot have its value.
void apply_without_setting(smb_draft& to, const smb_row& row, const smb_parameter& given, std::string text) {
    if (row.parameter == "vetofiles") return to.lose(given, std::move(text));
    if (row.rule != smb_rule::restricting) return to.note(smb_note_kind::none, given, std::move(text));
    if (given.value.empty() or not smb_boolean(given.value).value_or(true)) return;
    // Accounts that PAM refuses are those of the host, which the server does not have.
    if (to.is_server()) return to.note(smb_note_kind::wider, given, std::move(text));
    to.lose(given, std::move(text));
}

// For what sluice always does: the file may turn it off. A number, such as 0, is not a switch.
void apply_standard(smb_draft& to, const smb_row& row, const smb_parameter& given) {
    const std::string word = smb_word(given.value);
    const bool is_off = word == "no" or word == "false" or word == "off";
    is_off and row.advice != "not needed" ? to.note(smb_note_kind::none, given, "it cannot be turned off")
                                          : to.note(smb_note_kind::standard, given, std::string(row.advice));
}

// Applies the row of a parameter to the table.
void apply(smb_draft& to, const smb_row& row, const smb_parameter& given) {
    const bool is_elsewhere =
        row.rule == smb_rule::converted or row.rule == smb_rule::hosts or row.rule == smb_rule::file_mode;
    if (is_elsewhere) return;
    if (row.rule == smb_rule::standard) return apply_standard(to, row, given);
    const setting_record* const setting = to.setting_of(row);
    if (setting == nullptr) return apply_without_setting(to, row, given, std::string(row.advice));
    const setting_kind kind = setting->kind == setting_kind::other ? row.kind : setting->kind;
    if (given.value.empty()) return;
    const bool is_text =
        row.rule == smb_rule::patterns or (row.rule == smb_rule::copied and kind == setting_kind::text);
    const auto text = is_text ? smb_substituted(given.value, to.section.name)
                              : std::expected<std::string, std::string>(given.value);
    if (not text)
        return apply_without_setting(
            to, row, given, fmt::format("it depends on the client ({}); set {}", text.error(), setting->key));
    const auto converted = converted_smb_value(*text, row.rule, kind);
    if (not converted)
        return to.note(
            smb_note_kind::none, given,
            fmt::format("its value is not converted ({}); set {}", converted.error(), setting->key));
    const auto* const list = std::get_if<std::vector<std::string>>(&converted->value);
    if (list != nullptr and list->empty()) return;
    to.set(setting->key, converted->value);
    if (not row.difference.empty()) to.note(smb_note_kind::differs, given, std::string(row.difference));
}

void apply_path(smb_draft& to) {
    to.is_referral = to.effective("msdfsproxy") != nullptr and to.known.find("referral") != nullptr;
    if (to.is_referral) return;
    const smb_parameter* const path = to.effective("path");
    if (path == nullptr or path->value.empty())
        return to.skip(to.section.place, "", "it has no path; add one where the section begins first");
    const auto text = smb_substituted(path->value, to.section.name);
    if (not text)
        return to.skip(
            path->place, " path",
            fmt::format("the path depends on the client ({}); add a share for each directory", text.error()));
    to.set("path", *text);
}

// Samba removes the bits that a mask does not have, and adds others; the setting is the result. A
// directory keeps the set-group-ID bit that it has from its parent, if the mask has that bit.
void apply_modes(smb_draft& to) {
    struct modes {
        std::string_view mask;
        std::string_view force;
        std::string_view usual_mask;
        smb_mode_rule rule;
    };
    constexpr std::array<modes, 2> both{
        {{"createmask", "forcecreatemode", "0744", {.usual = 0666, .needed = 0600, .permitted = 0777}},
         {"directorymask",
          "forcedirectorymode",
          "0755",
          {.usual = 02777, .needed = 0700, .permitted = 03777}}}};
    for (const modes& each : both) {
        const smb_parameter* const mask = to.effective(each.mask);
        const smb_parameter* const force = to.effective(each.force);
        const setting_record* const setting = to.setting_of(*row_of(share_rows(), each.mask));
        for (const auto& [given, name] : {std::pair(mask, each.mask), std::pair(force, each.force)})
            if (given != nullptr and setting == nullptr)
                to.note(smb_note_kind::none, *given, std::string(row_of(share_rows(), name)->advice));
        if (setting == nullptr or (mask == nullptr and force == nullptr)) continue;
        const auto mode = smb_mode(mask == nullptr ? each.usual_mask : std::string_view(mask->value),
                                   force == nullptr ? "0" : std::string_view(force->value), each.rule);
        if (mode) {
            to.set(setting->key, *mode);
            continue;
        }
        // Other accounts must not have rights that they do not have with Samba.
        to.set(setting->key, fmt::format("{:04o}", each.rule.needed));
        to.note(smb_note_kind::none, mask != nullptr ? *mask : *force,
                fmt::format("its value is not converted ({}), so that only the owner has rights; set {}",
                            mode.error(), setting->key));
    }
}

// Settings whose default is not that of Samba.
void apply_defaults(smb_draft& to) {
    if (to.known.find("hide-dot-files") != nullptr and to.effective("hidedotfiles") == nullptr)
        to.set("hide-dot-files", true);
}

void apply_recycle(smb_draft& to, const smb_parameter& module) {
    const auto value = [&](std::string_view name) -> std::string_view {
        const smb_parameter* const given = to.effective(name);
        return given == nullptr ? std::string_view() : std::string_view(given->value);
    };
    const smb_row& row = *row_of(module_rows(), "recycle");
    if (to.setting_of(row) == nullptr) return to.note(smb_note_kind::none, module, std::string(row.advice));
    const smb_recycle done = converted_smb_recycle({.repository = value("recycle:repository"),
                                                    .keeptree = value("recycle:keeptree"),
                                                    .versions = value("recycle:versions"),
                                                    .exclude = value("recycle:exclude"),
                                                    .exclude_dir = value("recycle:exclude_dir")});
    to.set(row.setting, done.value);
    for (const smb_recycle::remark& each : done.remarks) {
        const smb_parameter* const given = to.effective(each.parameter);
        to.note(each.differs ? smb_note_kind::differs : smb_note_kind::none,
                given != nullptr ? *given : module, each.text);
    }
}

void apply_modules(smb_draft& to) {
    const smb_parameter* const modules = to.effective("vfsobjects");
    if (modules == nullptr) return;
    for (const std::string& name : smb_list(modules->value)) {
        smb_parameter module = *modules;
        module.shown = "vfs objects = " + name;
        module.value = "yes";
        const smb_row* const row = row_of(module_rows(), name);
        if (row == nullptr)
            to.lose(module, "the module is unknown, and may restrict access; remove it");
        else if (name == "recycle")
            apply_recycle(to, module);
        else
            apply(to, *row, module);
        if (name != "shadow_copy2" or to.known.find("previous-versions") == nullptr) continue;
        const auto value = [&](std::string_view parameter, const char* otherwise) {
            const smb_parameter* const given = to.effective(parameter);
            return given == nullptr ? std::string(otherwise) : given->value;
        };
        to.set("previous-versions", value("shadow:snapdir", ".snapshots") + "/" +
                                        value("shadow:format", "@GMT-%Y.%m.%d-%H.%M.%S"));
    }
}

// Returns false if another parameter makes this one unnecessary.
[[nodiscard]] bool is_needed(const smb_draft& to, std::string_view parameter) {
    if (parameter == "inheritowner") return not to.settings.contains("owner");  // 'force user'
    return true;
}

void apply_share_parameters(smb_draft& to) {
    for (const smb_row& row : share_rows()) {
        if (row.parameter.ends_with('*')) continue;
        const smb_parameter* const given = to.effective(row.parameter);
        if (given != nullptr and is_needed(to, row.parameter)) apply(to, row, *given);
    }
    if (const smb_parameter* const given = to.effective("casesensitive"); given != nullptr)
        smb_boolean(given->value).value_or(false)
            ? to.note(smb_note_kind::none, *given, "names are case-insensitive and keep their case")
            : to.note(smb_note_kind::standard, *given, "");
    apply_modes(to);
    apply_defaults(to);
    for (const smb_parameter& each : to.section.parameters) {
        const smb_row* const row = row_of(share_rows(), each.name);
        if (row == nullptr)
            to.note(smb_note_kind::none, each, "the parameter is unknown");
        else if (row->parameter.ends_with('*'))
            apply(to, *row, each);
    }
}

// The shares of one configuration.
class importer {
public:
    importer(const smb_conf& from, const table_record& server, const table_record& share)
        : from_(from),
          global_(from.sections.front()),
          share_(share),
          server_{.section = global_, .global = global_, .known = server, .reported = reported_} {}

    [[nodiscard]] smb_imported result() {
        for (const smb_problem& each : from_.problems)
            done_.notes.push_back(
                {.kind = smb_note_kind::error, .place = each.place, .subject = {}, .text = each.text});
        check_smb_server(server_);
        apply_smb_hosts(server_);
        apply_smb_encryption(server_);
        for (const smb_section& each : from_.sections | std::views::drop(1))
            add_share(each);
        apply_server();
        std::string all = "# Imported by 'sluice config import'. Check it with 'sluice config check'.\n";
        append(all, server_);
        for (smb_draft& each : shares_) {
            all += '\n';
            append(all, each, "[[share]]\n");
        }
        done_.toml = std::move(all);
        return std::move(done_);
    }

private:
    void add_share(const smb_section& section) {
        smb_draft& to = shares_.emplace_back(
            smb_draft{.section = section, .global = global_, .known = share_, .reported = reported_});
        const std::string kind = canonical_smb_name(section.name).name;
        if (kind == "homes") return add_homes(to);
        if (kind == "printers" or kind == "print$" or to.is_set("printable", false))
            return to.skip(section.place, "", "printers are not supported");
        if (not to.is_set("available", true)) {
            const bool lacks_path = to.effective("available")->place.line == section.place.line;
            return to.skip(
                section.place, "",
                lacks_path ? "it has no path; add one where the section begins first" : "'available' is off");
        }
        if (section.lacks_restriction or global_.lacks_restriction)
            return to.skip(section.place, "", "a line that may restrict access cannot be read; correct it");
        if (server_.lacks_restriction)
            return to.skip(section.place, "", "a restriction of all shares is not converted");
        to.set("name", section.name);
        apply_path(to);
        if (to.is_skipped) return;
        apply_smb_users(to);
        apply_smb_writers(to);
        apply_smb_encryption(to);
        apply_smb_hosts(to);
        apply_share_parameters(to);
        apply_modules(to);
        if (to.is_skipped) return;
        ++done_.shares;
        if (to.is_set("guestok", false)) guests_.push_back(&to);
    }

    // The shares of users are one setting of the server, and have no settings of their own.
    void add_homes(smb_draft& to) {
        const smb_section& section = to.section;
        if (not to.is_set("available", true)) return to.skip(section.place, "", "'available' is off");
        if (section.lacks_restriction or global_.lacks_restriction)
            return to.skip(section.place, "", "a line that may restrict access cannot be read; correct it");
        if (server_.lacks_restriction)
            return to.skip(section.place, "", "a restriction of all shares is not converted");
        const auto homes = converted_smb_homes(to);
        if (not homes) return to.skip(homes.error().place, homes.error().what, homes.error().text);
        to.is_skipped = true;
        server_.set("homes", homes->directory);
        ++done_.shares;
        if (homes->is_of_accounts)
            to.notes.push_back(
                {.kind = smb_note_kind::differs,
                 .place = section.place,
                 .subject = "[homes]",
                 .text = "the directory of a user is /home/USER, wherever that of the account is"});
        for (const smb_parameter* const each : homes->unsupported)
            to.note(smb_note_kind::none, *each, "shares of users have the settings of the server");
    }

    void apply_server() {
        apply_network();
        apply_role();
        for (const smb_parameter& each : global_.parameters) {
            if (const smb_row* const row = row_of(server_rows(), each.name))
                apply(server_, *row, each);
            else if (row_of(share_rows(), each.name) == nullptr)
                server_.note(smb_note_kind::none, each, "the parameter is unknown");
        }
        const bool can_impersonate = server_.known.find("impersonate") != nullptr;
        apply_guests(can_impersonate);
        if (can_impersonate) server_.set("impersonate", true);
    }

    // Only a stand-alone server has its users in a file.
    void apply_role() {
        const smb_parameter* const security = global_.find("security");
        const smb_parameter* const role = global_.find("serverrole");
        const std::string users = security == nullptr ? "" : smb_word(security->value);
        const std::string kind = role == nullptr ? "" : smb_word(role->value);
        constexpr const char* remedy =
            "users of a domain cannot log on: keep Samba, or add them with 'sluice user add'";
        if (users == "ads" or users == "domain") server_.note(smb_note_kind::error, *security, remedy);
        if (not kind.empty() and kind != "auto" and kind != "standalone" and kind != "standaloneserver")
            server_.note(smb_note_kind::error, *role, remedy);
    }

    void apply_network() {
        if (const smb_parameter* const ports = global_.find("smbports")) {
            const auto list = smb_list(ports->value);
            const bool is_usual = std::ranges::find(list, "445") != list.end() or list.empty();
            const auto port = is_usual ? std::nullopt : converted_number(list.front());
            if (port) server_.set("port", *port);
        }
        if (const smb_parameter* const signing = global_.find("serversigning");
            signing != nullptr and
            (smb_word(signing->value) == "auto" or not smb_boolean(signing->value).value_or(true)))
            server_.set("no-signing", true);
        const smb_parameter* const interfaces = global_.find("interfaces");
        if (interfaces == nullptr or not server_.is_set("bindinterfacesonly", false)) return;
        std::vector<std::string> addresses;
        for (const std::string& each : smb_list(interfaces->value)) {
            const std::string host = smb_host(std::string_view(each).substr(0, each.find('/')));
            if (smb_host_is_network(each))
                server_.note(smb_note_kind::none, *interfaces,
                             "a network is not converted; add the addresses of the host in it to listen");
            else if (host.empty())
                server_.note(smb_note_kind::none, *interfaces,
                             "the name of an interface is not converted; add its address to listen");
            else
                addresses.push_back(host);
        }
        if (addresses.empty()) {
            addresses = {"127.0.0.1"};
            server_.note(smb_note_kind::differs, *interfaces,
                         "no address is known, so that only programs of the host can connect");
        }
        server_.set("listen", addresses);
    }

    [[nodiscard]] static std::optional<setting_value> converted_number(const std::string& text) {
        const auto converted = converted_smb_value(text, smb_rule::copied, setting_kind::number);
        return converted ? std::optional(converted->value) : std::nullopt;
    }

    [[nodiscard]] static bool is_writable_for_guests(const smb_draft& share) {
        return not share.settings.contains("read-only") and not share.settings.contains("write-user");
    }

    // The setting of the server admits guests to all shares without a setting of their own.
    void apply_guests(bool impersonates) {
        if (guests_.empty() or share_.find("guest") == nullptr) return;
        for (smb_draft* const each : guests_) {
            if (impersonates)
                each->note(smb_note_kind::none, *each->effective("guestok"),
                           "impersonate rejects anonymous users, who have no account of the host; serve "
                           "the share by a second server without impersonate");
            each->set("guest", std::string(is_writable_for_guests(*each) ? "write" : "read"));
        }
        for (smb_draft& each : shares_)
            if (not each.is_skipped) each.set("guest", std::string("off"));
        server_.set("guest", true);
    }

    // Moves the notes of a table to the result, with their comments before it.
    void append(std::string& to, smb_draft& table, std::string_view heading = {}) {
        for (smb_note& each : table.notes) {
            to += fmt::format("# {}\n", text_of(each));
            done_.notes.push_back(std::move(each));
        }
        if (not table.is_skipped) to += fmt::format("{}{}", heading, table.lines);
    }

    const smb_conf& from_;
    const smb_section& global_;
    const table_record& share_;
    smb_reported_notes reported_;
    smb_draft server_;
    std::deque<smb_draft> shares_;  // addresses remain valid
    std::vector<smb_draft*> guests_;
    smb_imported done_;
};

}  // namespace

smb_imported import_smb_conf(const smb_conf& from, const table_record& server, const table_record& share) {
    ENSURE(not from.sections.empty(), "the reader always has the section [global]");
    return importer(from, server, share).result();
}

}  // namespace sluice::cli
