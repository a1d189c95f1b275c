#include "sluice/cli/migration/smb_import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sluice/cli/migration/smb_hosts.hpp"
#include "sluice/cli/migration/smb_rows.hpp"
#include "sluice/cli/migration/smb_values.hpp"

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

table_record table_of(std::initializer_list<std::pair<const char*, setting_kind>> settings) {
    table_record table;
    for (const auto& [key, kind] : settings)
        table.settings.push_back({.key = key, .kind = kind});
    return table;
}

table_record few_settings() {
    using enum setting_kind;
    return table_of({{"name", text},
                     {"path", text},
                     {"user", list},
                     {"read-only", boolean},
                     {"comment", text},
                     {"hidden", boolean},
                     {"guest", boolean},
                     {"size-limit", text},
                     {"encrypt", boolean}});
}

// The settings of a later version, with the types that their readers have.
table_record many_settings() {
    using enum setting_kind;
    table_record table = few_settings();
    for (const setting_record& each : table_of({{"owner", other},
                                                {"group", other},
                                                {"file-mode", text},
                                                {"folder-mode", text},
                                                {"inherit-owner", boolean},
                                                {"hide-dot-files", boolean},
                                                {"read-only-user", list},
                                                {"referral", list},
                                                {"hide", list},
                                                {"reject", list},
                                                {"recycle", other},
                                                {"write-user", list},
                                                {"allowed-host", list},
                                                {"denied-host", list},
                                                {"audit-log", text}})
                                          .settings)
        table.settings.push_back(each);
    std::ranges::find(table.settings, "guest", &setting_record::key)->kind = text;
    return table;
}

table_record many_server_settings() {
    using enum setting_kind;
    table_record table = few_settings();
    for (const char* const key : {"allowed-host", "denied-host"})
        table.settings.push_back({.key = key, .kind = list});
    table.settings.push_back({.key = "discovery", .kind = boolean});
    return table;
}

smb_imported import(std::string_view content, const table_record& share = few_settings(),
                    const table_record& server = few_settings()) {
    const auto none = [](const std::string&) -> std::expected<std::string, std::string> {
        return std::unexpected("missing");
    };
    return import_smb_conf(parse_smb_conf("smb.conf", content, none), server, share);
}

bool has_note(const smb_imported& from, smb_note_kind kind, std::string_view subject) {
    return std::ranges::any_of(
        from.notes, [&](const smb_note& note) { return note.kind == kind and note.subject == subject; });
}

TEST(smb_import, a_share_is_read_only_unless_it_is_writable) {
    EXPECT_THAT(import("[a]\npath = /a\n").toml, HasSubstr("read-only = true"));
    EXPECT_THAT(import("[a]\npath = /a\nwriteable = yes\n").toml, Not(HasSubstr("read-only")));
    EXPECT_THAT(import("[global]\nread only = no\n[a]\npath = /a\n").toml, Not(HasSubstr("read-only")));
}

TEST(smb_import, users_and_groups_become_a_list_and_an_unknown_user_never_opens_a_share) {
    EXPECT_THAT(import("[a]\npath = /a\nvalid users = DOM\\bob +staff @\"big team\"\n").toml,
                HasSubstr(R"(user = ["@staff", "@big team"])"));
    const smb_imported skipped = import("[a]\npath = /a\nvalid users = %U\n");
    EXPECT_EQ(skipped.shares, 0U);
    EXPECT_THAT(skipped.toml, Not(HasSubstr("[[share]]")));
}

TEST(smb_import, a_share_whose_restriction_cannot_be_read_is_skipped) {
    EXPECT_EQ(import("[a]\npath = /a\nvalid users = \xff\n").shares, 0U);
    EXPECT_EQ(import("valid users = \xff\n[a]\npath = /a\n").shares, 0U);
}

// Returns the report of the share that is skipped, or "(imported)".
std::string reason_to_skip(std::string_view content) {
    const smb_imported read = import(content, many_settings(), many_server_settings());
    if (read.shares != 0) return "(imported)";
    EXPECT_THAT(read.toml, Not(HasSubstr("[[share]]"))) << content;
    std::string all;
    for (const smb_note& each : read.notes)
        all += each.subject + ": " + each.text + "\n";
    return all;
}

TEST(smb_import, invalid_users_are_subtracted_from_valid_ones_or_the_share_is_skipped) {
    EXPECT_THAT(import("[a]\npath = /a\nvalid users = alice bob\ninvalid users = BOB root\n").toml,
                HasSubstr("user = [\"alice\"]"));
    for (const char* const lines :
         {"invalid users = bob\n", "valid users = bob\ninvalid users = bob\n",
          "valid users = alice\ninvalid users = @staff\n", "valid users = @staff\ninvalid users = bob\n",
          "valid users = alice\ninvalid users = %U\n"})
        EXPECT_THAT(reason_to_skip(std::string("[a]\npath = /a\n") + lines),
                    HasSubstr("[a] invalid users: share skipped"))
            << lines;
    EXPECT_THAT(reason_to_skip("invalid users = root\n[a]\npath = /a\n"), HasSubstr("share skipped"));
    EXPECT_EQ(reason_to_skip("[a]\npath = /a\ninvalid users =\n"), "(imported)");
}

TEST(smb_import, a_list_of_users_without_an_element_opens_no_share) {
    for (const char* const list : {",", "%U", "&netgroup", "@DOM\\staff", "@"})
        EXPECT_THAT(reason_to_skip(std::string("[a]\npath = /a\nvalid users = ") + list + "\n"),
                    HasSubstr("none of its users is known"))
            << list;
}

TEST(smb_import, a_list_of_readers_that_is_not_converted_makes_the_share_read_only) {
    for (const char* const list : {"bob, %U", "@DOM\\staff", "&staff bob", ","}) {
        const smb_imported all = import(
            std::string("[a]\npath = /a\nread only = no\nread list = ") + list + "\n", many_settings());
        EXPECT_THAT(all.toml, HasSubstr("read-only = true")) << list;
        EXPECT_THAT(all.toml, Not(HasSubstr("read-only-user = "))) << list;
        EXPECT_TRUE(has_note(all, smb_note_kind::none, "[a] read list")) << list;
    }
    EXPECT_THAT(import("[a]\npath = /a\nread only = no\nread list = bob\n").toml,
                HasSubstr("read-only = true"));
    EXPECT_THAT(import("[a]\npath = /a\nread only = no\nread list = @staff\n", many_settings()).toml,
                HasSubstr("read-only-user = [\"@staff\"]"));
}

TEST(smb_import, all_words_that_require_encryption_do) {
    for (const char* const word : {"required", "Mandatory", "FORCE", "forced", "enforced", "Required"}) {
        const std::string given = std::string("smb encrypt = ") + word + "\n";
        const std::string share = import("[a]\npath = /a\n" + given).toml;
        EXPECT_LT(share.find("[[share]]"), share.find("encrypt = true")) << word;
        const std::string all = import("server " + given + "[a]\npath = /a\n").toml;
        EXPECT_LT(all.find("encrypt = true"), all.find("[[share]]")) << word;
    }
    for (const char* const word : {"no", "default", "Off", "if_required", "desired", "auto", "Disabled"})
        EXPECT_THAT(import("[a]\npath = /a\nsmb encrypt = " + std::string(word) + "\n").toml,
                    Not(HasSubstr("encrypt = true")))
            << word;
    EXPECT_THAT(reason_to_skip("[a]\npath = /a\nsmb encrypt = always\n"), HasSubstr("share skipped"));
    EXPECT_THAT(reason_to_skip("smb encrypt = always\n[a]\npath = /a\n"), HasSubstr("all shares skipped"));
}

TEST(smb_import, defaults_apply_to_later_sections_only) {
    const auto* const text =
        "[a]\npath = /a\n[global]\nread only = no\nsmb encrypt = required\n"
        "[b]\npath = /b\n[global]\nsmb encrypt = off\n";
    const std::string all = import(text).toml;
    const std::string second = all.substr(all.find("name = \"b\""));
    EXPECT_THAT(all, HasSubstr("path = \"/a\"\nread-only = true"));
    EXPECT_THAT(second, Not(HasSubstr("read-only")));
    EXPECT_THAT(second, HasSubstr("encrypt = true"));
}

TEST(smb_import, a_host_that_is_denied_by_name_skips_the_share) {
    for (const char* const lines :
         {"hosts deny = desk\n", "hosts allow = 10. EXCEPT desk\n", "hosts allow = ALL EXCEPT @lab\n",
          "hosts deny = ALL EXCEPT 10. EXCEPT 10.2.\n"}) {
        EXPECT_THAT(reason_to_skip(std::string("[a]\npath = /a\n") + lines), HasSubstr("[a] hosts")) << lines;
        EXPECT_THAT(reason_to_skip(lines + std::string("[a]\npath = /a\n")), HasSubstr("all shares skipped"))
            << lines;
    }
    // The server admits hosts of its list only.
    EXPECT_EQ(reason_to_skip("hosts allow = 10.\n[a]\npath = /a\nhosts deny = desk\n"), "(imported)");
}

TEST(smb_import, restrictions_without_a_setting_skip_the_share) {
    for (const char* const lines :
         {"preexec close = yes\n", "root preexec close = yes\n", "vfs objects = worm\n",
          "vfs objects = recycle virusfilter\n", "vfs objects = readonly\n", "vfs objects = unheard_of\n",
          "acl_xattr:ignore system acls = yes\n", "veto files = /%U/\n"})
        EXPECT_THAT(reason_to_skip(std::string("[a]\npath = /a\n") + lines), HasSubstr("share skipped"))
            << lines;
    EXPECT_EQ(reason_to_skip("[a]\npath = /a\npreexec close = no\nveto files = /%S/\n"), "(imported)");
    for (const char* const line : {"config backend = registry\n", "root directory = /jail\n", "root = /x\n"})
        EXPECT_THAT(reason_to_skip(line + std::string("[a]\npath = /a\n")), HasSubstr("all shares skipped"))
            << line;
    EXPECT_THAT(reason_to_skip("acl_xattr:ignore system acls = yes\n[a]\npath = /a\n"),
                HasSubstr("share skipped"));
    EXPECT_THAT(reason_to_skip("ntlm auth = disabled\n[a]\npath = /a\n"), HasSubstr("all shares skipped"));
    EXPECT_EQ(reason_to_skip("config backend = File\nroot dir = /\n[a]\npath = /a\n"), "(imported)");
}

TEST(smb_import, a_dialect_that_samba_requires_is_reported) {
    EXPECT_TRUE(has_note(import("server min protocol = SMB3_00"), smb_note_kind::none,
                         "[global] server min protocol"));
    EXPECT_TRUE(has_note(import("min protocol = SMB2"), smb_note_kind::standard, "[global] min protocol"));
}

TEST(smb_import, members_and_controllers_of_a_domain_are_reported) {
    for (const char* const line : {"security = ADS", "security = Domain"})
        EXPECT_TRUE(has_note(import(line), smb_note_kind::error, "[global] security")) << line;
    for (const char* const line : {"server role = Member Server",
                                   "server role = active directory domain controller", "server role = dc"})
        EXPECT_TRUE(has_note(import(line), smb_note_kind::error, "[global] server role")) << line;
    for (const char* const line :
         {"security = User", "server role = Standalone Server", "server role = AUTO"})
        EXPECT_TRUE(import(line).notes.empty()) << line;
}

TEST(smb_import, guests_are_reported_if_impersonate_rejects_them) {
    table_record server = many_server_settings();
    const auto* const text = "[a]\npath = /a\nguest ok = yes\n";
    EXPECT_FALSE(has_note(import(text, many_settings(), server), smb_note_kind::none, "[a] guest ok"));
    server.settings.push_back({.key = "impersonate", .kind = setting_kind::boolean});
    EXPECT_TRUE(has_note(import(text, many_settings(), server), smb_note_kind::none, "[a] guest ok"));
}

TEST(smb_import, the_server_listens_at_addresses_of_interfaces_and_not_at_networks) {
    const auto listening = [](const std::string& interfaces) {
        return import("bind interfaces only = yes\ninterfaces = " + interfaces + "\n[a]\npath = /a\n");
    };
    EXPECT_THAT(listening("lo 192.168.1.0/24 192.168.1.7/24").toml, HasSubstr("listen = [\"192.168.1.7\"]"));
    EXPECT_THAT(listening("fe80::/10 2001:db8::5/64").toml, HasSubstr("listen = [\"2001:db8::5\"]"));
    EXPECT_THAT(listening("192.168.1.").toml, HasSubstr("listen = [\"127.0.0.1\"]"));
    EXPECT_TRUE(has_note(listening("192.168.1.0/255.255.255.0"), smb_note_kind::none, "[global] interfaces"));
    EXPECT_THAT(listening("eth0").toml, HasSubstr("listen = [\"127.0.0.1\"]"));
}

TEST(smb_import, no_text_of_the_result_controls_a_terminal) {
    const smb_imported read = import("[a]\npath = /a\ncomment = \u009b31m\u202e\n[b\u009b]\n");
    EXPECT_THAT(read.toml, HasSubstr("comment = \"\\u009B31m\\u202E\""));
    EXPECT_THAT(read.toml, Not(HasSubstr("\u009b")));
    EXPECT_THAT(read.toml, HasSubstr("# smb.conf: line 4: [b?]: share skipped"));
}

TEST(smb_import, a_parameter_is_reported_if_this_program_does_not_have_its_setting) {
    const auto* const text = "[a]\npath = /a\nforce user = bob\nhosts allow = 10.\nveto files = /*.exe/\n";
    const smb_imported few = import(text);
    EXPECT_TRUE(has_note(few, smb_note_kind::none, "[a] force user"));
    EXPECT_TRUE(has_note(few, smb_note_kind::error, "[a] hosts allow"));
    EXPECT_TRUE(has_note(few, smb_note_kind::error, "[a] veto files"));
    EXPECT_EQ(few.shares, 0U);
    const smb_imported many = import(text, many_settings());
    EXPECT_THAT(many.toml, HasSubstr("owner = \"bob\""));
    EXPECT_THAT(many.toml, HasSubstr("allowed-host = [\"10.0.0.0/8\", \"127.0.0.1\", \"::1\"]"));
    EXPECT_THAT(many.toml, HasSubstr("reject = [\"*.exe\"]"));
    EXPECT_TRUE(has_note(many, smb_note_kind::differs, "[a] force user"));
    EXPECT_EQ(many.notes.size(), 1U);
}

TEST(smb_import, modes_modules_and_lists_have_the_form_of_their_settings) {
    const smb_imported all = import(
        "[a]\npath = /a\ncreate mask = 664\ndirectory mask = 02775\nforce group = +staff\nwrite list = bob\n"
        "vfs objects = recycle full_audit\nmax disk size = 500\nhide files = /a b/.x/\n",
        many_settings());
    for (const char* const line : {"file-mode = \"0664\"", "folder-mode = \"2775\"", "group = \"staff\"",
                                   "write-user = [\"bob\"]", "recycle = { versions = false }",
                                   "audit-log = \"yes\"", "size-limit = \"500M\"", R"(hide = ["a b", ".x"])"})
        EXPECT_THAT(all.toml, HasSubstr(line));
}

TEST(smb_import, a_mask_and_a_forced_mode_are_one_mode_of_new_files) {
    const auto modes = [](const std::string& lines) {
        return import("[a]\npath = /a\n" + lines, many_settings()).toml;
    };
    EXPECT_THAT(modes("create mask = 0700\nforce create mode = 0060\n"), HasSubstr("file-mode = \"0660\""));
    EXPECT_THAT(modes("force create mode = 0020\n"), HasSubstr("file-mode = \"0664\""));
    EXPECT_THAT(modes("force directory mode = 6070\n"), HasSubstr("folder-mode = \"2775\""));
    EXPECT_THAT(modes(""), Not(HasSubstr("-mode")));
    const smb_imported useless = import("[a]\npath = /a\ncreate mask = 0444\n", many_settings());
    EXPECT_THAT(useless.toml, HasSubstr("\nfile-mode = \"0600\""));
    EXPECT_THAT(modes("directory mask = 9\n"), HasSubstr("\nfolder-mode = \"0700\""));
    EXPECT_TRUE(has_note(useless, smb_note_kind::none, "[a] create mask"));
}

TEST(smb_import, a_list_of_writers_restricts_others_only_if_the_share_is_read_only) {
    const auto share = [](const std::string& lines) {
        return import("[a]\npath = /a\n" + lines, many_settings(), many_server_settings()).toml;
    };
    const std::string some = share("write list = @staff\nread list = bob\nguest ok = yes\n");
    EXPECT_THAT(some, HasSubstr("write-user = [\"@staff\"]"));
    EXPECT_THAT(some, HasSubstr("read-only-user = [\"bob\"]"));
    EXPECT_THAT(some, HasSubstr("guest = \"read\""));
    EXPECT_THAT(some, Not(HasSubstr("read-only = true")));
    EXPECT_THAT(share("read only = no\nwrite list = bob\n"), Not(HasSubstr("write-user")));
    EXPECT_THAT(share("write list = %U\n"), HasSubstr("read-only = true"));
    EXPECT_THAT(share("read list = bob\n"), Not(HasSubstr("\nread-only-user")));
}

TEST(smb_import, the_lists_of_hosts_of_all_shares_are_those_of_the_server) {
    const std::string all = import("hosts allow = 10.\n[a]\npath = /a\n[b]\npath = /b\nhosts deny = 10.2.\n",
                                   many_settings(), many_server_settings())
                                .toml;
    EXPECT_LT(all.find("allowed-host = [\"10.0.0.0/8\""), all.find("[[share]]"));
    EXPECT_EQ(all.find("allowed-host"), all.rfind("allowed-host"));
    EXPECT_GT(all.find("denied-host = [\"10.2.0.0/16\"]"), all.find("name = \"b\""));
}

TEST(smb_import, a_share_without_files_has_no_settings_of_files) {
    const std::string share =
        import("[a]\nmsdfs proxy = \\\\other\\share\ncreate mask = 0600\nhosts allow = 10.\n",
               many_settings())
            .toml;
    EXPECT_THAT(share, HasSubstr("referral = [\"//other/share\"]"));
    EXPECT_THAT(share, HasSubstr("allowed-host"));
    for (const char* const key : {"\nread-only", "\nfile-mode", "\nhide-dot-files"})
        EXPECT_THAT(share, Not(HasSubstr(key)));
}

TEST(smb_import, files_that_begin_with_a_dot_are_hidden_as_with_samba) {
    EXPECT_THAT(import("[a]\npath = /a\n", many_settings()).toml, HasSubstr("hide-dot-files = true"));
    EXPECT_THAT(import("[a]\npath = /a\nhide dot files = no\n", many_settings()).toml,
                HasSubstr("hide-dot-files = false"));
}

TEST(smb_import, the_owner_of_new_files_is_that_of_the_directory_unless_a_user_is_forced) {
    EXPECT_THAT(import("[a]\npath = /a\ninherit owner = yes\n", many_settings()).toml,
                HasSubstr("inherit-owner = true"));
    const std::string both =
        import("[a]\npath = /a\ninherit owner = yes\nforce user = bob\n", many_settings()).toml;
    EXPECT_THAT(both, HasSubstr("owner = \"bob\""));
    EXPECT_THAT(both, Not(HasSubstr("inherit-owner = ")));
}

TEST(smb_import, guests_of_one_share_do_not_open_the_others) {
    const std::string each = import("[a]\npath = /a\nguest ok = yes\n[b]\npath = /b\n", many_settings()).toml;
    EXPECT_THAT(each, HasSubstr("guest = \"read\""));
    EXPECT_THAT(each, HasSubstr("guest = \"off\""));
    EXPECT_LT(each.find("guest = true"), each.find("[[share]]"));
}

TEST(smb_import, values_cannot_leave_their_string_or_comment) {
    const smb_imported read = import("[a\"b]\npath = /a\"\\\n]\ncomment = \"x\\y\" # z\n[\x7f]\npath = /b\n");
    EXPECT_THAT(read.toml, HasSubstr(R"(name = "a\"b")"));
    EXPECT_THAT(read.toml, HasSubstr(R"(comment = "\"x\\y\" # z")"));
    EXPECT_THAT(read.toml, Not(HasSubstr("\x7f")));
}

TEST(smb_import, a_parameter_of_all_shares_is_reported_once) {
    const smb_imported read = import("force user = bob\n[a]\npath = /a\n[b]\npath = /b\n");
    EXPECT_EQ(std::ranges::count(read.notes, "[global] force user", &smb_note::subject), 1);
}

TEST(smb_import, lists_of_hosts_never_give_access_that_samba_denies) {
    using testing::ElementsAre;
    using testing::IsEmpty;
    const smb_host_lists some = converted_smb_hosts("10. EXCEPT 10.1. host", "");
    EXPECT_THAT(some.allowed, ElementsAre("10.0.0.0/8", "127.0.0.1", "::1"));
    EXPECT_THAT(some.denied, ElementsAre("10.1.0.0/16"));
    EXPECT_EQ(some.not_denied, 1U);
    EXPECT_THAT(converted_smb_hosts("192.168. 127.", "ALL").allowed,
                ElementsAre("192.168.0.0/16", "127.0.0.0/8"));
    EXPECT_THAT(converted_smb_hosts("192.168.", "0.0.0.0/0").allowed, ElementsAre("192.168.0.0/16"));
    EXPECT_TRUE(converted_smb_hosts("192.168.", "10.").denies_others);
    EXPECT_THAT(converted_smb_hosts("", "all").denied, ElementsAre("0.0.0.0/0", "::/0"));
    EXPECT_THAT(converted_smb_hosts("", "ALL EXCEPT 10.").allowed, ElementsAre("10.0.0.0/8"));
    EXPECT_THAT(converted_smb_hosts("", "ALL EXCEPT host").denied, ElementsAre("0.0.0.0/0", "::/0"));
    EXPECT_THAT(converted_smb_hosts("host.example", "ALL").denied, ElementsAre("0.0.0.0/0", "::/0"));
    EXPECT_THAT(converted_smb_hosts("host.example", "").allowed, ElementsAre("127.0.0.1", "::1"));
    const smb_host_lists any = converted_smb_hosts("ALL", "10.");
    EXPECT_THAT(any.allowed, IsEmpty());
    EXPECT_THAT(any.denied, IsEmpty());
    EXPECT_EQ(converted_smb_hosts("", "10. host").not_denied, 1U);
    EXPECT_EQ(converted_smb_hosts("", "ALL EXCEPT 10. EXCEPT 10.2.").not_denied, 1U);
    EXPECT_THAT(converted_smb_hosts("ALL EXCEPT 10. EXCEPT 10.2.", "").denied, ElementsAre("10.0.0.0/8"));
}

TEST(smb_import, hosts_become_addresses_with_a_prefix) {
    EXPECT_EQ(smb_host("192.168.1."), "192.168.1.0/24");
    EXPECT_EQ(smb_host("192.168.1.7/22"), "192.168.0.0/22");
    EXPECT_EQ(smb_host("127."), "127.0.0.0/8");
    EXPECT_EQ(smb_host("10.1.2.3"), "10.1.2.3");
    EXPECT_EQ(smb_host("10.1.0.0/255.255.0.0"), "10.1.0.0/16");
    EXPECT_EQ(smb_host("10.1.0.0/255.0.255.0"), "");
    EXPECT_EQ(smb_host("fe80::/10"), "fe80::/10");
    EXPECT_EQ(smb_host("localhost"), "127.0.0.1");
    for (const char* const text :
         {"host.example", "EXCEPT", "1.2.3.4.5", "300.", "10.0.0.0/33", "192.168", ""})
        EXPECT_EQ(smb_host(text), "") << text;
}

TEST(smb_import, each_parameter_has_one_row) {
    for (const auto rows : {share_rows(), server_rows(), module_rows()})
        for (const smb_row& row : rows)
            EXPECT_EQ(std::ranges::count(rows, row.parameter, &smb_row::parameter), 1) << row.parameter;
}

TEST(smb_import, converts_the_directory_of_homes_if_its_last_name_is_that_of_the_user) {
    for (const char* const user : {"%S", "%U", "%u"}) {
        const auto imported =
            import(std::string("[homes]\nread only = no\npath = /srv/homes/") + user + "\n");
        EXPECT_THAT(imported.toml, HasSubstr("homes = \"/srv/homes\"\n")) << user;
        EXPECT_THAT(imported.toml, Not(HasSubstr("[[share]]")));
        EXPECT_TRUE(imported.notes.empty()) << text_of(imported.notes.front());
        EXPECT_EQ(imported.shares, 1U);
    }
}

TEST(smb_import, reports_that_homes_without_a_path_are_those_in_the_directory_home) {
    for (const char* const path : {"", "path = %H\n"}) {
        const auto imported = import(std::string("[homes]\nread only = no\nvalid users = %S\n") + path);
        EXPECT_THAT(imported.toml, HasSubstr("homes = \"/home\"\n"));
        ASSERT_EQ(imported.notes.size(), 1U);
        EXPECT_EQ(imported.notes.front().kind, smb_note_kind::differs);
    }
}

TEST(smb_import, skips_homes_with_another_path) {
    for (const char* const path : {"/srv/%U/files", "/srv/%g/%S", "%S", "srv/%S", "/srv/homes", "/%H/%S"}) {
        const auto imported = import(std::string("[homes]\nread only = no\npath = ") + path + "\n");
        EXPECT_THAT(imported.toml, Not(HasSubstr("homes = "))) << path;
        EXPECT_EQ(imported.shares, 0U) << path;
    }
}

TEST(smb_import, skips_homes_that_would_be_open_to_more) {
    for (const char* const line : {"read only = yes", "valid users = alice", "valid users = %S bob",
                                   "hosts allow = 10.", "invalid users = eve", "read list = eve"}) {
        const auto imported = import(std::string("[homes]\npath = /h/%S\nwriteable = yes\n") + line + "\n");
        EXPECT_THAT(imported.toml, testing::Not(testing::ContainsRegex("\n *homes = "))) << line;
        EXPECT_EQ(imported.shares, 0U) << line;
        ASSERT_FALSE(imported.notes.empty()) << line;
        EXPECT_THAT(imported.notes.front().text, HasSubstr("set homes = \"/h\" if they may"));
    }
    EXPECT_EQ(import("[homes]\npath = /h/%S\n").shares, 0U) << "the default of Samba is read-only";
    EXPECT_EQ(import("[global]\nvalid users = eve\n[homes]\nread only = no\n").shares, 0U);
    EXPECT_EQ(import("[homes]\nread only = no\navailable = no\n").shares, 0U);
    EXPECT_THAT(import("[homes]\nread only = no\navailable = no\n[b]\npath = /b\n").toml,
                Not(HasSubstr("homes = ")));
    EXPECT_EQ(import("[homes]\nread only = no\nacl_xattr:ignore system acls = yes\n").shares, 0U);
    EXPECT_EQ(
        import("[global]\nhosts allow = 10.\n[homes]\nread only = no\n[global]\nhosts allow = ALL\n").shares,
        0U);
    EXPECT_EQ(import("[homes]\nread only = no\npreexec close = no\n").shares, 1U);
    EXPECT_EQ(import("[global]\ninvalid users = eve\n[homes]\nread only = no\n").shares, 0U);
    EXPECT_EQ(import("[global]\nvfs objects = readonly\n[homes]\nread only = no\n").shares, 0U);
    EXPECT_EQ(import("[global]\nvfs objects = own_module\n[homes]\nread only = no\n").shares, 0U);
    const auto recycled = import("[global]\nvfs objects = recycle\n[homes]\nread only = no\npath = /h/%S\n");
    EXPECT_EQ(recycled.shares, 1U);
    ASSERT_EQ(recycled.notes.size(), 1U);
    EXPECT_THAT(recycled.notes.front().text, HasSubstr("shares of users have the settings of the server"));
}

}  // namespace
}  // namespace sluice::cli
