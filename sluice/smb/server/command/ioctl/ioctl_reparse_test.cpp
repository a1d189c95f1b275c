#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/utf16.hpp"

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
    static wire::create_args with(create_disposition disposition) {
        auto how = polite_client::for_everything();
        how.disposition = disposition;
        return how;
    }
    static wire::create_args of_link_itself() {
        auto how = with(create_disposition::open);
        how.options = create_options::open_reparse_point;
        return how;
    }
    void make_directory(std::string_view name) {
        auto how = polite_client::for_everything();
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
TEST_F(links, to_missing_files_are_not_opened_by_requests_that_would_create_them) {
    ASSERT_EQ(make_link("dangling", "missing"), nt_status::success);
    for (const auto disposition :
         {create_disposition::open, create_disposition::open_if, create_disposition::overwrite,
          create_disposition::overwrite_if, create_disposition::supersede})
        EXPECT_EQ(try_create("dangling", with(disposition)), nt_status::object_name_not_found)
            << static_cast<unsigned>(disposition);
    EXPECT_EQ(try_create("dangling", with(create_disposition::create)), nt_status::object_name_collision);
    EXPECT_EQ(try_create("dangling:stream", with(create_disposition::open_if)),
              nt_status::object_name_not_found);
    EXPECT_EQ(try_create("dangling", of_link_itself()), nt_status::success);
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
