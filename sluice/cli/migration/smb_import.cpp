#include "sluice/cli/migration/smb_import.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/migration/smb_hosts.hpp"
#include "sluice/cli/migration/smb_recycle.hpp"
#include "sluice/cli/migration/smb_rows.hpp"
#include "sluice/cli/migration/smb_values.hpp"

namespace sluice::cli {
namespace {

// Returns the text without characters that would end a comment, or that a terminal interprets.
[[nodiscard]] std::string printable(std::string_view text) {
    std::string safe(text);
    std::ranges::replace_if(
        safe, [](char c) { return static_cast<unsigned char>(c) < 0x20 or c == 0x7f; }, '?');
    return safe;
}

// The reports so far. A parameter of [global] may apply to many shares.
using reported_notes = std::set<std::tuple<std::string, unsigned, std::string>>;

// The settings of a share without files.
constexpr std::array<std::string_view, 9> settings_of_referrals{
    "name", "referral", "comment", "hidden", "encrypt", "user", "guest", "allowed-host", "denied-host"};

// One table of the result, while it is written.
struct draft {
    const smb_section& section;
    const table_record& known;  // the settings that the table may have
    reported_notes& reported;
    std::string lines{};
    std::vector<smb_note> notes{};
    std::set<std::string, std::less<>> settings{};  // that `lines` has
    bool is_skipped = false;
    bool is_referral = false;

    void set(std::string_view key, const setting_value& value) {
        if (is_referral and std::ranges::find(settings_of_referrals, key) == settings_of_referrals.end())
            return;
        if (settings.emplace(key).second) lines += fmt::format("{} = {}\n", key, toml_text(value));
    }
    void note(smb_note_kind kind, const smb_parameter& about, std::string text) {
        const smb_parameter* const own = section.find(about.name);
        const bool is_own = own != nullptr and own->place.line == about.place.line;
        std::string subject = fmt::format("[{}] {}", is_own ? section.name : "global", about.shown);
        if (not reported.emplace(about.place.file, about.place.line, subject + text).second) return;
        notes.push_back(
            {.kind = kind, .place = about.place, .subject = std::move(subject), .text = std::move(text)});
    }
    void skip(const smb_place& place, std::string_view what, std::string text) {
        is_skipped = true;
        notes.push_back({.kind = smb_note_kind::error,
                         .place = place,
                         .subject = fmt::format("[{}]{}", section.name, what),
                         .text = "share skipped: " + std::move(text)});
    }
    // Returns null if this program does not have the setting of a row.
    [[nodiscard]] const setting_record* setting_of(const smb_row& row) const {
        return row.setting.empty() ? nullptr : known.find(row.setting);
    }
};

[[nodiscard]] smb_note_kind kind_without_setting(const smb_row& row) noexcept {
    const bool restricts =
        row.rule == smb_rule::restricting or row.rule == smb_rule::hosts or row.parameter == "readlist";
    return restricts ? smb_note_kind::wider : smb_note_kind::none;
}

// Applies the row of a parameter to the table.
void apply(draft& to, const smb_row& row, const smb_parameter& given) {
    const bool is_elsewhere =
        row.rule == smb_rule::converted or row.rule == smb_rule::hosts or row.rule == smb_rule::file_mode;
    if (is_elsewhere) return;
    if (row.rule == smb_rule::standard)
        return to.note(smb_note_kind::standard, given, std::string(row.advice));
    const setting_record* const setting = to.setting_of(row);
    if (setting == nullptr) return to.note(kind_without_setting(row), given, std::string(row.advice));
    const setting_kind kind = setting->kind == setting_kind::other ? row.kind : setting->kind;
    if (given.value.empty()) return;
    const bool is_text = row.rule == smb_rule::copied and kind == setting_kind::text;
    const auto text = is_text or row.rule == smb_rule::users
                          ? smb_substituted(given.value, to.section.name)
                          : std::expected<std::string, std::string>(given.value);
    if (not text and is_text)
        return to.note(smb_note_kind::none, given,
                       fmt::format("it depends on the client ({}); set {}", text.error(), setting->key));
    const auto converted = converted_smb_value(text.value_or(given.value), row.rule, kind);
    if (not converted)
        return to.note(
            kind_without_setting(row), given,
            fmt::format("its value is not converted ({}); set {}", converted.error(), setting->key));
    const auto* const list = std::get_if<std::vector<std::string>>(&converted->value);
    const bool is_empty = list != nullptr and list->empty();
    if (not converted->skipped.empty())
        to.note(kind_without_setting(row), given,
                fmt::format("elements of the list that are not converted: {}; complete {}",
                            converted->skipped.size(), setting->key));
    // Without any user, the share would be open to all.
    if (is_empty and row.rule == smb_rule::users and not converted->skipped.empty() and
        setting->key == "user")
        return to.skip(given.place, " " + given.shown, "none of its users is known before a client connects");
    if (is_empty) return;
    to.set(setting->key, converted->value);
    if (not row.difference.empty()) to.note(smb_note_kind::differs, given, std::string(row.difference));
}

// Applies 'hosts allow' and 'hosts deny' of a section. Samba checks those of [global] when a client
// connects to the server, and those of a share later.
void apply_hosts(draft& to) {
    const smb_parameter* const allow = to.section.find("hostsallow");
    const smb_parameter* const deny = to.section.find("hostsdeny");
    if (allow == nullptr and deny == nullptr) return;
    const smb_row& row = *row_of(share_rows(), "hostsallow");
    const setting_record* const allowed = to.setting_of(row);
    const setting_record* const denied = to.setting_of(*row_of(share_rows(), "hostsdeny"));
    const auto value = [](const smb_parameter* given) { return given == nullptr ? "" : given->value; };
    if (allowed == nullptr or denied == nullptr) {
        for (const smb_parameter* const each : {allow, deny})
            if (each != nullptr) to.note(kind_without_setting(row), *each, std::string(row.advice));
        return;
    }
    const smb_host_lists lists = converted_smb_hosts(value(allow), value(deny));
    if (not lists.allowed.empty()) to.set(allowed->key, lists.allowed);
    if (not lists.denied.empty()) to.set(denied->key, lists.denied);
    const smb_parameter& about = allow != nullptr ? *allow : *deny;
    constexpr const char* incomplete = "elements of the list that are not converted: {}; complete {}";
    if (lists.not_allowed != 0)
        to.note(smb_note_kind::none, about, fmt::format(incomplete, lists.not_allowed, allowed->key));
    if (lists.not_denied != 0)
        to.note(kind_without_setting(row), about, fmt::format(incomplete, lists.not_denied, denied->key));
    if (lists.denies_others)
        to.note(smb_note_kind::differs, about, "hosts that are in neither list have no access");
}

// The share-level value in effect: that of the share, else that of [global].
[[nodiscard]] const smb_parameter* effective(const smb_section& share, const smb_section& global,
                                             std::string_view name) noexcept {
    const smb_parameter* const own = share.find(name);
    return own != nullptr ? own : global.find(name);
}

[[nodiscard]] bool is_set(const smb_section& share, const smb_section& global, std::string_view name,
                          bool otherwise) {
    const smb_parameter* const given = effective(share, global, name);
    return given == nullptr ? otherwise : smb_boolean(given->value).value_or(otherwise);
}

void apply_path(draft& to, const smb_section& global) {
    to.is_referral =
        effective(to.section, global, "msdfsproxy") != nullptr and to.known.find("referral") != nullptr;
    if (to.is_referral) return;
    const smb_parameter* const path = effective(to.section, global, "path");
    if (path == nullptr or path->value.empty())
        return to.skip(to.section.place, "", "it has no path; add one");
    const auto text = smb_substituted(path->value, to.section.name);
    if (not text)
        return to.skip(
            path->place, " path",
            fmt::format("the path depends on the client ({}); add a share for each directory", text.error()));
    to.set("path", *text);
}

// Samba removes the bits that a mask does not have, and adds others; the setting is the result. A
// directory keeps the set-group-ID bit that it has from its parent, if the mask has that bit.
void apply_modes(draft& to, const smb_section& global) {
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
        const smb_parameter* const mask = effective(to.section, global, each.mask);
        const smb_parameter* const force = effective(to.section, global, each.force);
        const setting_record* const setting = to.setting_of(*row_of(share_rows(), each.mask));
        for (const auto& [given, name] : {std::pair(mask, each.mask), std::pair(force, each.force)})
            if (given != nullptr and setting == nullptr)
                to.note(smb_note_kind::none, *given, std::string(row_of(share_rows(), name)->advice));
        if (setting == nullptr or (mask == nullptr and force == nullptr)) continue;
        const auto mode = smb_mode(mask == nullptr ? each.usual_mask : std::string_view(mask->value),
                                   force == nullptr ? "0" : std::string_view(force->value), each.rule);
        if (mode)
            to.set(setting->key, *mode);
        else
            to.note(smb_note_kind::none, mask != nullptr ? *mask : *force,
                    fmt::format("its value is not converted ({}); set {}", mode.error(), setting->key));
    }
}

// A share that is read-only, except for some users.
void apply_read_only(draft& to, const smb_section& global) {
    if (not is_set(to.section, global, "readonly", true)) return;
    const smb_parameter* const writers = effective(to.section, global, "writelist");
    const smb_row& row = *row_of(share_rows(), "writelist");
    const setting_record* const setting = to.setting_of(row);
    if (writers == nullptr or writers->value.empty()) return to.set("read-only", true);
    if (setting == nullptr) {
        to.note(smb_note_kind::none, *writers, std::string(row.advice));
        return to.set("read-only", true);
    }
    const auto text = smb_substituted(writers->value, to.section.name);
    const auto converted =
        converted_smb_value(text.value_or(writers->value), smb_rule::users, setting_kind::list);
    ENSURE(converted.has_value(), "a list of users always has a value");
    if (not converted->skipped.empty())
        to.note(smb_note_kind::none, *writers,
                fmt::format("elements of the list that are not converted: {}; complete {}",
                            converted->skipped.size(), setting->key));
    const bool is_empty = std::get<std::vector<std::string>>(converted->value).empty();
    is_empty ? to.set("read-only", true) : to.set(setting->key, converted->value);
}

// Settings whose default is not that of Samba.
void apply_defaults(draft& to, const smb_section& global) {
    if (to.known.find("hide-dot-files") != nullptr and
        effective(to.section, global, "hidedotfiles") == nullptr)
        to.set("hide-dot-files", true);
}

void apply_recycle(draft& to, const smb_section& global, const smb_parameter& module) {
    const auto value = [&](std::string_view name) -> std::string_view {
        const smb_parameter* const given = effective(to.section, global, name);
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
        const smb_parameter* const given = effective(to.section, global, each.parameter);
        to.note(each.differs ? smb_note_kind::differs : smb_note_kind::none,
                given != nullptr ? *given : module, each.text);
    }
}

void apply_modules(draft& to, const smb_section& global) {
    const smb_parameter* const modules = effective(to.section, global, "vfsobjects");
    if (modules == nullptr) return;
    for (const std::string& name : smb_list(modules->value)) {
        smb_parameter module = *modules;
        module.shown = "vfs objects = " + name;
        module.value = "yes";
        const smb_row* const row = row_of(module_rows(), name);
        if (row == nullptr)
            to.note(smb_note_kind::none, module, "the module is unknown");
        else if (name == "recycle")
            apply_recycle(to, global, module);
        else
            apply(to, *row, module);
        if (name != "shadow_copy2" or to.known.find("previous-versions") == nullptr) continue;
        const auto value = [&](std::string_view parameter, const char* otherwise) {
            const smb_parameter* const given = effective(to.section, global, parameter);
            return given == nullptr ? std::string(otherwise) : given->value;
        };
        to.set("previous-versions", value("shadow:snapdir", ".snapshots") + "/" +
                                        value("shadow:format", "@GMT-%Y.%m.%d-%H.%M.%S"));
    }
}

// Returns false if another parameter makes this one unnecessary.
[[nodiscard]] bool is_needed(const draft& to, std::string_view parameter) {
    if (parameter == "readlist") return not to.settings.contains("read-only");
    if (parameter == "inheritowner") return not to.settings.contains("owner");  // 'force user'
    return true;
}

void apply_share_parameters(draft& to, const smb_section& global) {
    for (const smb_row& row : share_rows()) {
        if (row.parameter.ends_with('*')) continue;
        const smb_parameter* const given = effective(to.section, global, row.parameter);
        if (given != nullptr and is_needed(to, row.parameter)) apply(to, row, *given);
    }
    apply_hosts(to);
    apply_modes(to, global);
    apply_defaults(to, global);
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
          server_{.section = global_, .known = server, .reported = reported_} {}

    [[nodiscard]] smb_imported result() {
        for (const smb_problem& each : from_.problems)
            done_.notes.push_back(
                {.kind = smb_note_kind::error, .place = each.place, .subject = {}, .text = each.text});
        for (const smb_section& each : from_.sections | std::views::drop(1))
            add_share(each);
        apply_server();
        std::string all = "# Imported by 'sluice config import'. Check it with 'sluice config check'.\n";
        append(all, server_);
        for (draft& each : shares_) {
            all += '\n';
            append(all, each, "[[share]]\n");
        }
        done_.toml = std::move(all);
        return std::move(done_);
    }

private:
    void add_share(const smb_section& section) {
        draft& to = shares_.emplace_back(draft{.section = section, .known = share_, .reported = reported_});
        const std::string kind = canonical_smb_name(section.name).name;
        if (kind == "homes") return add_homes(to);
        if (kind == "printers" or kind == "print$" or is_set(section, global_, "printable", false))
            return to.skip(section.place, "", "printers are not supported");
        if (not is_set(section, global_, "available", true))
            return to.skip(section.place, "", "'available' is off");
        if (section.lacks_restriction or global_.lacks_restriction)
            return to.skip(section.place, "", "a line that may restrict access cannot be read; correct it");
        to.set("name", section.name);
        apply_path(to, global_);
        if (to.is_skipped) return;
        apply_read_only(to, global_);
        apply_encryption(to, section.find("serversmbencrypt"));
        apply_share_parameters(to, global_);
        apply_modules(to, global_);
        if (to.is_skipped) return;
        ++done_.shares;
        if (is_set(section, global_, "guestok", false)) guests_.push_back(&to);
    }

    void add_homes(draft& to) {
        const setting_record* const setting = server_.known.find("homes");
        const bool has_default_path = to.section.find("path") == nullptr;
        if (setting != nullptr and setting->kind == setting_kind::boolean and has_default_path) {
            to.is_skipped = true;  // it is a setting of the server
            return server_.set("homes", true);
        }
        const char* const remedy = setting != nullptr ? "use the setting 'homes' of the server"
                                                      : "add a share with 'user' for each user";
        to.skip(to.section.place, "", fmt::format("it depends on the client; {}", remedy));
    }

    static void apply_encryption(draft& to, const smb_parameter* given) {
        if (given == nullptr) return;
        const bool requires_it = given->value == "required" or given->value == "mandatory";
        if (requires_it)
            to.set("encrypt", true);
        else if (given->value == "desired")
            to.note(smb_note_kind::none, *given, "clients decide; set encrypt to require it");
    }

    void apply_server() {
        apply_network();
        apply_hosts(server_);
        apply_encryption(server_, global_.find("serversmbencrypt"));
        if (const smb_parameter* const security = global_.find("security");
            security != nullptr and (security->value == "ads" or security->value == "domain"))
            server_.note(smb_note_kind::error, *security,
                         "users of a domain cannot log on: keep Samba, or add them with 'sluice user add'");
        for (const smb_parameter& each : global_.parameters) {
            if (const smb_row* const row = row_of(server_rows(), each.name))
                apply(server_, *row, each);
            else if (row_of(share_rows(), each.name) == nullptr)
                server_.note(smb_note_kind::none, each, "the parameter is unknown");
        }
        apply_guests();
        const bool can_impersonate = server_.known.find("impersonate") != nullptr;
        if (can_impersonate) server_.set("impersonate", true);
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
            (signing->value == "auto" or not smb_boolean(signing->value).value_or(true)))
            server_.set("no-signing", true);
        const smb_parameter* const interfaces = global_.find("interfaces");
        if (interfaces == nullptr or not is_set(global_, global_, "bindinterfacesonly", false)) return;
        std::vector<std::string> addresses;
        for (const std::string& each : smb_list(interfaces->value)) {
            std::string host = smb_host(std::string_view(each).substr(0, each.find('/')));
            if (host.empty())
                server_.note(smb_note_kind::wider, *interfaces,
                             "the name of an interface is not converted; add its address to listen");
            else
                addresses.push_back(std::move(host));
        }
        if (not addresses.empty()) server_.set("listen", addresses);
    }

    [[nodiscard]] static std::optional<setting_value> converted_number(const std::string& text) {
        const auto converted = converted_smb_value(text, smb_rule::copied, setting_kind::number);
        return converted ? std::optional(converted->value) : std::nullopt;
    }

    [[nodiscard]] static bool is_writable_for_guests(const draft& share) {
        return not share.settings.contains("read-only") and not share.settings.contains("write-user");
    }

    // The setting of the server admits guests to all shares without a setting of their own.
    void apply_guests() {
        if (guests_.empty() or share_.find("guest") == nullptr) return;
        for (draft* const each : guests_)
            each->set("guest", std::string(is_writable_for_guests(*each) ? "write" : "read"));
        for (draft& each : shares_)
            if (not each.is_skipped) each.set("guest", std::string("off"));
        server_.set("guest", true);
    }

    // Moves the notes of a table to the result, with their comments before it.
    void append(std::string& to, draft& table, std::string_view heading = {}) {
        for (smb_note& each : table.notes) {
            to += fmt::format("# {}\n", text_of(each));
            done_.notes.push_back(std::move(each));
        }
        if (not table.is_skipped) to += fmt::format("{}{}", heading, table.lines);
    }

    const smb_conf& from_;
    const smb_section& global_;
    const table_record& share_;
    reported_notes reported_;
    draft server_;
    std::deque<draft> shares_;  // addresses remain valid
    std::vector<draft*> guests_;
    smb_imported done_;
};

}  // namespace

smb_imported import_smb_conf(const smb_conf& from, const table_record& server, const table_record& share) {
    ENSURE(not from.sections.empty(), "the reader always has the section [global]");
    return importer(from, server, share).result();
}

std::string text_of(const smb_note& note) {
    const std::string place =
        note.place.line == 0 ? note.place.file : fmt::format("{}: line {}", note.place.file, note.place.line);
    const auto kind = [&]() -> std::string {
        switch (note.kind) {
            case smb_note_kind::error:
                return "";
            case smb_note_kind::wider:
                return "no equivalent, so more users have access";
            case smb_note_kind::none:
                return "no equivalent";
            case smb_note_kind::differs:
                return "the meaning of its setting differs";
            case smb_note_kind::standard:
                return "sluice does this by default";
        }
        return "";
    }();
    std::string text;
    for (const std::string& part : {place, note.subject, kind, note.text})
        if (not part.empty()) text += (text.empty() ? "" : ": ") + part;
    return printable(text);
}

}  // namespace sluice::cli
