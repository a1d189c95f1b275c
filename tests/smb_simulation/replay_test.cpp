#include "sluice/smb/wire/query_info.hpp"
#include "tests/smb_simulation/polite_client.hpp"

// A CREATE sent once more, because its reply may have been lost ([MS-SMB2] 3.3.5.9.10).

namespace sluice::smb_simulation {
namespace {

using smb::wire::command;
using smb::wire::header_flags;
using smb::wire::nt_status;

class replay : public served {
protected:
    static smb::wire::create_args repeatable() {
        auto how = polite_client::for_everything();
        how.oplock_level = smb::wire::oplock_level::none;
        how.contexts.durable_v2.emplace();
        how.contexts.durable_v2->create_guid.bytes[0] = std::byte{7};
        return how;
    }
    void use(const smb::wire::create_reply& one) {
        const smb::wire::query_info_args question{.information_class = 4,  // FileBasicInformation
                                                  .output_bytes_max = 100,
                                                  .file = one.file};
        EXPECT_EQ(client().call(command::query_info, question).status(), nt_status::success);
    }
};

TEST_F(replay, gives_the_same_open_again_until_it_was_used) {
    const auto first = client().create("f", repeatable());
    client().flags = header_flags::replay;
    EXPECT_EQ(client().create("f", repeatable()).file, first.file);
    client().flags = header_flags::none;
    use(first);
    client().flags = header_flags::replay;
    EXPECT_NE(client().create("f", repeatable()).file, first.file);
}

}  // namespace
}  // namespace sluice::smb_simulation
