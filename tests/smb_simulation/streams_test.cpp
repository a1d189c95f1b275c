#include "sluice/smb/wire/close.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/polite_client.hpp"

// What a file and its streams owe each other.

namespace sluice::smb_simulation {
namespace {

using smb::wire::command;
using smb::wire::create_disposition;
using smb::wire::create_options;
using smb::wire::nt_status;

class streams : public served {
protected:
    nt_status try_create(std::string_view name, smb::wire::create_args how) {
        const std::string spelled = smb::wire::utf16_of(name).value();
        how.name = std::as_bytes(std::span(spelled));
        return client().call(command::create, how).status();
    }
    nt_status close(const smb::wire::create_reply& one) {
        return client().call(command::close, smb::wire::close_args{.file = one.file}).status();
    }
    static smb::wire::create_args opening() {
        auto how = polite_client::for_everything();
        how.disposition = create_disposition::open;
        return how;
    }
};

TEST_F(streams, that_are_open_keep_their_removed_file_until_the_last_of_them_closes) {
    const auto first = client().create("f:first");
    const auto second = client().create("f:second");
    auto how = opening();
    how.options = create_options::delete_on_close;
    EXPECT_EQ(close(client().create("f", how)), nt_status::success);
    EXPECT_EQ(try_create("f", opening()), nt_status::delete_pending);
    EXPECT_EQ(try_create("f:first", opening()), nt_status::delete_pending);
    EXPECT_EQ(close(first), nt_status::success);
    EXPECT_EQ(try_create("f", opening()), nt_status::delete_pending);
    EXPECT_EQ(close(second), nt_status::success);
    EXPECT_EQ(try_create("f", opening()), nt_status::object_name_not_found);
}

TEST_F(streams, are_never_directories) {
    auto how = polite_client::for_everything();
    how.options = create_options::directory_file;
    EXPECT_EQ(close(client().create("d", how)), nt_status::success);
    EXPECT_EQ(try_create("d::$DATA", how), nt_status::not_a_directory);
    EXPECT_EQ(try_create("f:stream", how), nt_status::not_a_directory);
    EXPECT_EQ(try_create("d::$DATA", opening()), nt_status::file_is_a_directory);
}

}  // namespace
}  // namespace sluice::smb_simulation
