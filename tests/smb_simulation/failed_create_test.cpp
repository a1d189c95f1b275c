#include "sluice/smb/wire/file/close.hpp"
#include "tests/smb_simulation/polite_client.hpp"

// A CREATE that fails late leaves nothing: neither an open, nor a mark on the file.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::nt_status;

class failed_create : public served {
protected:
    // A CREATE asks for the status of the file several times; each time, this may fail.
    void make_unreliable(std::uint32_t per_mille) {
        auto& volume =
            dynamic_cast<vfs::memory_volume&>(server_of_test().context().find_share("files")->volume());
        volume.set_faults({.seed = 5, .status_fails = per_mille});
    }
    static constexpr unsigned attempts = 100;
};

TEST_F(failed_create, leaves_no_open) {
    (void)client().create("f");
    make_unreliable(300);
    std::size_t successes = 0;
    for (unsigned i = 0; i != attempts; ++i)
        if (client().try_create("f", polite_client::for_everything()) == nt_status::success) ++successes;
    EXPECT_GT(successes, 0U);
    EXPECT_LT(successes, attempts);
    EXPECT_EQ(server_of_test().gauges().opens, 1 + successes);
}

TEST_F(failed_create, does_not_remove_the_file_that_it_was_to_remove_when_closed) {
    (void)client().create("f");
    auto how = polite_client::for_everything();
    how.disposition = wire::create_disposition::open;
    how.options = wire::create_options::delete_on_close;
    make_unreliable(300);
    unsigned failures = 0;
    for (unsigned i = 0; i != attempts; ++i) {
        const nt_status status = client().try_create("f", how);
        ASSERT_NE(status, nt_status::delete_pending) << "a CREATE that failed has removed the file";
        if (status != nt_status::success) ++failures;
    }
    EXPECT_GT(failures, 0U);
}

}  // namespace
}  // namespace sluice::smb_simulation
