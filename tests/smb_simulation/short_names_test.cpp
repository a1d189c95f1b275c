#include <sys/xattr.h>

#include <filesystem>

#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Short names as clients see them: in listings, lookups, FileAlternateNameInformation and
// FileShortNameInformation.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::file_information_class;
using wire::nt_status;

class short_names : public testing::Test {
protected:
    short_names() : world_(io::simulation_options{.seed = 1}, 1) {
        std::string name = (std::filesystem::current_path() / "sluice-short-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
        std::vector<server::share_configuration> shares;
        for (const bool is_on : {false, true}) {
            server::share_configuration one;
            one.name = is_on ? "on" : "off";
            one.volume = vfs::host_volume::open(*world_.loop, root_.c_str(), {.short_names = is_on}).value();
            keeps_attributes_ = one.volume->features().has_streams;
            shares.push_back(std::move(one));
        }
        world_.server->replace_shares(std::move(shares));
        connect("on");
    }
    ~short_names() override {
        client_.reset();
        world_.stop();
        std::filesystem::remove_all(root_);
    }

    void connect(std::string_view share) {
        client_.reset();
        client_ = std::make_unique<compliant_client>(world_);
        EXPECT_EQ(client_->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(client_->connect_tree(share), nt_status::success);
    }
    // With the intent that stands for the privilege to restore files.
    [[nodiscard]] static wire::create_args to_restore() {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::open_for_backup_intent;
        return how;
    }
    [[nodiscard]] wire::file_id open(std::string_view name, const wire::create_args& how = to_restore()) {
        return client_->create(name, how).file;
    }
    [[nodiscard]] nt_status set(const wire::file_id& file, const std::string& name) {
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        EXPECT_TRUE(wire::encode_name_information(writer, name));
        return client_
            ->call(command::set_info, wire::set_info_args{.information_class = static_cast<std::uint8_t>(
                                                              file_information_class::short_name),
                                                          .file = file,
                                                          .input = *writer.finish()})
            .status();
    }
    [[nodiscard]] compliant_client::answer ask_for_short_name(const wire::file_id& file) {
        return client_->call(command::query_info,
                             wire::query_info_args{.information_class = static_cast<std::uint8_t>(
                                                       file_information_class::alternate_name),
                                                   .output_bytes_max = 100,
                                                   .file = file});
    }
    [[nodiscard]] std::string short_name_of(const wire::file_id& file) {
        const auto answer = ask_for_short_name(file);
        EXPECT_EQ(answer.status(), nt_status::success);
        const auto reply = wire::decode_query_info_reply(answer.message()).value();
        return wire::decode_name_information(reply.output).value();
    }
    // The names that match a pattern, each with its short name.
    [[nodiscard]] std::map<std::string, std::string> listed(
        std::string_view pattern, wire::directory_class form = wire::directory_class::id_both_directory) {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::directory_file;
        const std::string text = wire::utf16_of(pattern).value();
        const auto answer = client_->call(
            command::query_directory, wire::query_directory_args{.information_class = form,
                                                                 .file = client_->create("", how).file,
                                                                 .pattern = std::as_bytes(std::span(text)),
                                                                 .output_bytes_max = 4000});
        std::map<std::string, std::string> found;
        if (answer.status() != nt_status::success) return found;
        const auto reply = wire::decode_query_directory_reply(answer.message()).value();
        wire::directory_entry_reader entries(reply.entries, static_cast<file_information_class>(form));
        while (const auto entry = entries.next().value())
            found[wire::utf8_of(entry->name_utf16).value()] = wire::utf8_of(entry->short_name_utf16).value();
        return found;
    }

    using names = std::map<std::string, std::string>;
    world world_;
    std::filesystem::path root_;
    std::unique_ptr<compliant_client> client_;
    bool keeps_attributes_ = false;
};

TEST_F(short_names, are_listed_matched_and_found) {
    (void)open("A long name.text");
    (void)open("PLAIN.TXT");
    EXPECT_EQ(listed("*~1*"), (names{{"A long name.text", "ALONGN~1.TEX"}}));
    EXPECT_EQ(listed("alongn~1.tex"), (names{{"A long name.text", "ALONGN~1.TEX"}}));
    EXPECT_EQ(listed("PLAIN.*"), (names{{"PLAIN.TXT", ""}}));
    const auto opened = client_->create("alongn~1.tex", compliant_client::for_everything());
    EXPECT_EQ(opened.action, wire::create_action::opened);
    EXPECT_EQ(short_name_of(opened.file), "ALONGN~1.TEX");
    EXPECT_EQ(short_name_of(open("plain.txt")), "PLAIN.TXT");
}

TEST_F(short_names, belong_to_a_link_itself_however_it_is_listed) {
    (void)open("Target of the link");
    std::filesystem::create_symlink("Target of the link", root_ / "A long link");
    EXPECT_EQ(listed("A long link"), (names{{"A long link", "ALONGL~1"}}));
    EXPECT_EQ(listed("A long l*"), (names{{"A long link", "ALONGL~1"}}));
}

TEST_F(short_names, are_determined_only_for_listings_that_contain_them) {
    if (not keeps_attributes_) GTEST_SKIP() << "no extended attributes on this file system";
    (void)open("A long name 1");
    (void)open("A long name 2");
    const auto record_bytes = [&] {
        return ::getxattr(root_.c_str(), "user.sluice.short_names", nullptr, 0);
    };
    EXPECT_EQ(listed("*", wire::directory_class::id_full_directory).size(), 4U);
    EXPECT_LT(record_bytes(), 0);
    EXPECT_EQ(listed("*").size(), 4U);
    EXPECT_GT(record_bytes(), 0) << "the names compete";
}

TEST_F(short_names, are_set_by_clients) {
    const auto file = open("A long name.text");
    if (not keeps_attributes_) GTEST_SKIP() << "no extended attributes on this file system";
    ASSERT_EQ(set(file, "CHOSEN"), nt_status::success);
    EXPECT_EQ(short_name_of(file), "CHOSEN");
    EXPECT_EQ(listed("chosen"), (names{{"A long name.text", "CHOSEN"}}));
    EXPECT_EQ(set(open("Other long name"), "chosen"), nt_status::object_name_collision);
    EXPECT_EQ(set(file, ""), nt_status::success);
    EXPECT_EQ(ask_for_short_name(file).status(), nt_status::object_name_not_found);
}

TEST_F(short_names, are_refused_with_the_reasons_of_the_specification) {
    const auto file = open("A long name.text");
    for (const char* name : {"\\CHOSEN", "A.B.C", "NINECHARS", "A B"})
        EXPECT_EQ(set(file, name), nt_status::invalid_parameter) << name;
    EXPECT_EQ(set(open("A long name.text", compliant_client::for_everything()), "CHOSEN"),
              nt_status::privilege_not_held);
    auto only_reads = to_restore();
    only_reads.desired_access = wire::access_mask::read_data;
    EXPECT_EQ(set(open("A long name.text", only_reads), "CHOSEN"), nt_status::access_denied);
    auto root = to_restore();
    root.options |= wire::create_options::directory_file;
    EXPECT_EQ(set(open("", root), "CHOSEN"), nt_status::invalid_parameter);
    auto removes = to_restore();
    removes.options |= wire::create_options::delete_on_close;
    EXPECT_EQ(set(open("Removed file", removes), "CHOSEN"), nt_status::access_denied);
    if (keeps_attributes_)
        EXPECT_EQ(set(open("A long name.text:stream"), "CHOSEN"), nt_status::invalid_parameter);
}

TEST_F(short_names, are_absent_if_they_are_turned_off) {
    connect("off");
    const auto file = open("A long name.text");
    EXPECT_EQ(listed("A*"), (names{{"A long name.text", ""}}));
    EXPECT_EQ(listed("*~1*"), names());
    EXPECT_EQ(ask_for_short_name(file).status(), nt_status::object_name_not_found);
    EXPECT_EQ(set(file, "CHOSEN"), nt_status::short_names_not_enabled_on_volume);
    EXPECT_EQ(short_name_of(open("plain.txt")), "PLAIN.TXT");
}

}  // namespace
}  // namespace sluice::smb_simulation
