#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/message/error_response.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/node_attached.hpp"

// Symbolic links that clients create, and what they open through them.

namespace sluice::smb_simulation {
namespace {

using namespace smb;
using wire::command;
using wire::create_disposition;
using wire::create_options;
using wire::nt_status;

class links : public command_test {
protected:
    nt_status try_create(std::string_view name, wire::create_args how) {
        const std::string spelled = wire::utf16_of(name).value();
        how.name = std::as_bytes(std::span(spelled));
        return client().call(command::create, how).status();
    }
    // The target of the link that stops a CREATE, and the part of the name after the link.
    struct link_in_reply {
        std::string target;
        std::string rest;
        bool operator==(const link_in_reply&) const = default;
    };
    link_in_reply stopped(std::string_view name, const wire::create_args& how) {
        const auto said = client().answer_to(client().send_create(name, how));
        EXPECT_EQ(said.status(), nt_status::stopped_on_symlink) << name;
        const auto reply = wire::decode_error_reply(said.message());
        const auto link = wire::decode_symlink_error(reply->data);
        EXPECT_TRUE(link and link->relative and link->print_name == link->substitute_name);
        if (not link) return {};
        const std::size_t rest_length = link->unparsed_path_bytes / 2;
        return {.target = wire::utf8_of(link->substitute_name).value(),
                .rest = std::string(name.substr(name.size() - rest_length))};
    }
    static wire::create_args with(create_disposition disposition) {
        auto how = compliant_client::for_everything();
        how.disposition = disposition;
        return how;
    }
    static wire::create_args of_link_itself() {
        auto how = with(create_disposition::open);
        how.options = create_options::open_reparse_point;
        return how;
    }
    void make_directory(std::string_view name) {
        auto how = compliant_client::for_everything();
        how.options = create_options::directory_file;
        close(client().create(name, how).file);
    }
    void close(const wire::file_id& file) {
        EXPECT_EQ(client().call(command::close, wire::close_args{.file = file}).status(), nt_status::success);
    }
    nt_status set_link(const wire::file_id& file, const std::string& target, bool is_relative = true) {
        std::array<std::byte, 256> room;
        byte_writer writer(room);
        EXPECT_TRUE(encode(
            writer, wire::reparse_symlink{.substitute = target, .print = target, .relative = is_relative}));
        const wire::ioctl_args asked{
            .code = wire::control_code::set_reparse_point, .file = file, .input = *writer.finish()};
        return client().call(command::ioctl, asked).status();
    }
    /// Creates a file and turns it into a link.
    nt_status make_link(std::string_view name, const std::string& target, bool is_relative = true) {
        const auto file = client().create(name).file;
        const nt_status status = set_link(file, target, is_relative);
        close(file);
        return status;
    }
    nt_status rename(const wire::file_id& file, const std::string& target) {
        std::array<std::byte, 256> room;
        byte_writer writer(room);
        EXPECT_TRUE(encode(writer, wire::rename_information{.replace_if_exists = false, .target = target}));
        const wire::set_info_args asked{
            .type = wire::info_type::file,
            .information_class = static_cast<std::uint8_t>(wire::file_information_class::rename),
            .file = file,
            .input = *writer.finish()};
        return client().call(command::set_info, asked).status();
    }
};

// The server used to look for the file, fail to create it, and look again, without an end.
TEST_F(links, to_missing_files_stop_requests_that_would_create_them) {
    ASSERT_EQ(make_link("dangling", "missing\\x"), nt_status::success);
    for (const auto disposition :
         {create_disposition::open, create_disposition::create, create_disposition::open_if,
          create_disposition::overwrite, create_disposition::overwrite_if, create_disposition::supersede}) {
        EXPECT_EQ(stopped("dangling", with(disposition)), (link_in_reply{"missing\\x", ""}))
            << static_cast<unsigned>(disposition);
        EXPECT_EQ(stopped("dangling\\a\\b", with(disposition)), (link_in_reply{"missing\\x", "\\a\\b"}))
            << static_cast<unsigned>(disposition);
    }
    EXPECT_EQ(stopped("Dangling:stream", with(create_disposition::open_if)),
              (link_in_reply{"missing\\x", ":stream"}));
    EXPECT_EQ(try_create("dangling", of_link_itself()), nt_status::success);
    EXPECT_EQ(stopped("dangling\\a", of_link_itself()), (link_in_reply{"missing\\x", "\\a"}));
}

TEST_F(links, to_missing_files_are_named_relative_to_the_directory_in_the_name_of_the_request) {
    make_directory("d");
    make_directory("d\\e");
    ASSERT_EQ(make_link("d\\e\\up", "..\\missing"), nt_status::success);
    ASSERT_EQ(make_link("d\\e\\down", "missing"), nt_status::success);
    ASSERT_EQ(make_link("short", "d\\e"), nt_status::success);
    const auto opening = with(create_disposition::open);
    EXPECT_EQ(stopped("d\\e\\up", opening), (link_in_reply{"..\\missing", ""}));
    EXPECT_EQ(stopped("short\\down\\x", opening), (link_in_reply{"missing", "\\x"}));
    // Applied to this name, the target would be another one.
    EXPECT_EQ(try_create("short\\up", opening), nt_status::object_name_not_found);
    EXPECT_EQ(try_create("d\\.\\e\\up", opening), nt_status::object_name_not_found);
    EXPECT_EQ(try_create("d\\missing\\x", opening), nt_status::object_path_not_found);
}

TEST_F(links, that_lead_out_of_the_share_are_not_described) {
    auto& volume = server_of_test().context().find_share("files")->volume();
    for (const auto& [name, target] :
         {std::pair{"secret", "/home/u/secret"}, std::pair{"up", "../../secret"}}) {
        const auto link = volume.create(name, {}).value();
        ASSERT_TRUE(link->attached()->become_link(target));
        for (const auto& path : {std::string(name), std::string(name) + "\\x"}) {
            const auto said = client().answer_to(client().send_create(path, with(create_disposition::open)));
            EXPECT_EQ(said.status(), nt_status::not_same_device) << path;
            EXPECT_TRUE(wire::decode_error_reply(said.message())->data.empty()) << path;
        }
    }
}

TEST_F(links, in_a_circle_are_not_opened_by_requests_that_would_create_them) {
    ASSERT_EQ(make_link("a", "b"), nt_status::success);
    ASSERT_EQ(make_link("b", "a"), nt_status::success);
    for (const auto disposition :
         {create_disposition::open_if, create_disposition::overwrite_if, create_disposition::supersede})
        EXPECT_TRUE(wire::is_error(try_create("a", with(disposition))));
}

TEST_F(links, open_what_they_lead_to) {
    ASSERT_EQ(make_link("link", "file"), nt_status::success);
    close(client().create("file").file);
    EXPECT_EQ(try_create("link", with(create_disposition::open_if)), nt_status::success);
}

TEST_F(links, out_of_the_share_are_refused) {
    make_directory("d");
    for (const char* target : {"\\etc\\passwd", "/etc/passwd", "\\??\\C:\\x", "C:\\x", "\\\\server\\share",
                               "..", "..\\x", "d\\..\\..\\x"})
        EXPECT_EQ(make_link("link", target), nt_status::io_reparse_data_invalid) << target;
    EXPECT_EQ(make_link("link", "d\\x", false), nt_status::io_reparse_data_invalid);
    EXPECT_EQ(make_link("d\\up", "..\\link"), nt_status::success);
    EXPECT_EQ(make_link("d\\out", "..\\..\\link"), nt_status::io_reparse_data_invalid);
}

TEST_F(links, are_not_renamed_to_where_they_would_lead_out_of_the_share) {
    make_directory("d");
    make_directory("d\\e");
    ASSERT_EQ(make_link("d\\link", "..\\x"), nt_status::success);
    const auto link = client().create("d\\link", of_link_itself()).file;
    EXPECT_EQ(rename(link, "link"), nt_status::access_denied);
    EXPECT_EQ(rename(link, "d\\e\\link"), nt_status::success);
}

TEST_F(links, report_their_target_and_files_have_none) {
    ASSERT_EQ(make_link("link", "d\\file"), nt_status::success);
    const auto link = client().create("link", of_link_itself()).file;
    const auto said = control(wire::control_code::get_reparse_point, link);
    ASSERT_EQ(said.status(), nt_status::success);
    const auto point = wire::decode_reparse_point(output_of_control(said)).value();
    EXPECT_EQ(std::get<wire::reparse_symlink>(point).substitute, "d\\file");
    EXPECT_EQ(control(wire::control_code::get_reparse_point, link, {}, 10).status(),
              nt_status::buffer_too_small);
    EXPECT_EQ(control(wire::control_code::get_reparse_point, client().create("file").file).status(),
              nt_status::not_a_reparse_point);
}

TEST_F(links, are_made_of_valid_data_alone) {
    const auto file = client().create("file").file;
    EXPECT_EQ(control(wire::control_code::set_reparse_point, file).status(),
              nt_status::io_reparse_data_invalid);
    EXPECT_EQ(control(wire::control_code::delete_reparse_point, file).status(),
              nt_status::not_a_reparse_point);
}

}  // namespace
}  // namespace sluice::smb_simulation
