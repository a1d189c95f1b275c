#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Requests that start again because another client caches the file, and a client that caches it
// again each time.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using server::limits::caching_waits_max;
using server::limits::rename_attempts_max;
using wire::command;
using wire::nt_status;

class requests_that_start_again : public served {
protected:
    requests_that_start_again() : holder_(where_, 2) {
        EXPECT_EQ(holder_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(holder_.connect_tree("files"), nt_status::success);
    }

    // Returns a CREATE with a handle lease of its own.
    wire::create_args cached(wire::share_access share = compliant_client::for_everything().share_access) {
        auto how = compliant_client::for_everything();
        how.share_access = share;
        how.oplock_level = wire::oplock_level::lease;
        how.contexts.lease =
            wire::lease{.key = {}, .state = wire::lease_state::read | wire::lease_state::handle};
        const std::uint64_t number = ++leases_;
        std::memcpy(how.contexts.lease->key.bytes.data(), &number, sizeof number);
        return how;
    }
    // Closes an open and opens a file in one frame: no other request is served in between.
    wire::file_id exchange(const wire::file_id& held, std::string_view name, const wire::create_args& how) {
        holder_.begin_compound();
        const std::uint64_t close = holder_.send(command::close, wire::close_args{.file = held});
        const std::uint64_t opening = holder_.send_create(name, how);
        holder_.end_compound();
        EXPECT_EQ(holder_.answer_to(close).status(), nt_status::success);
        const auto opened = holder_.answer_to(opening);
        EXPECT_EQ(opened.status(), nt_status::success);
        const auto reply = wire::decode_create_reply(opened.message());
        EXPECT_EQ(reply->oplock_level, wire::oplock_level::lease);
        return reply->file;
    }
    std::uint64_t send_rename(const wire::file_id& file) {
        std::array<std::byte, 64> room;
        byte_writer writer(room);
        EXPECT_TRUE(encode(writer, wire::rename_information{.replace_if_exists = false, .target = "new"}));
        return client().send(command::set_info,
                             wire::set_info_args{.type = wire::info_type::file,
                                                 .information_class = static_cast<std::uint8_t>(
                                                     wire::file_information_class::rename),
                                                 .file = file,
                                                 .input = *writer.finish()});
    }
    // Makes the holder cache a file again each time. Returns how often until the request is
    // answered.
    unsigned exchanges_until_answer(std::uint64_t waiting, wire::file_id held, std::string_view name,
                                    wire::share_access share) {
        unsigned exchanges = 0;
        while (exchanges <= caching_waits_max and not client().is_answered(waiting)) {
            held = exchange(held, name, cached(share));
            ++exchanges;
        }
        return exchanges;
    }

    compliant_client holder_;
    std::uint64_t leases_ = 0;
};

TEST_F(requests_that_start_again, end_although_the_holder_opens_the_file_alone_each_time) {
    constexpr auto alone = wire::share_access::none;
    const wire::file_id held = holder_.create("f", cached(alone)).file;
    const std::uint64_t waiting = client().send_create("f");
    EXPECT_EQ(exchanges_until_answer(waiting, held, "f", alone), caching_waits_max);
    EXPECT_EQ(client().answer_to(waiting).status(), nt_status::sharing_violation);
}

TEST_F(requests_that_start_again, end_although_the_holder_caches_the_renamed_file_each_time) {
    const wire::file_id file = client().create("f").file;
    const auto shared = compliant_client::for_everything().share_access;
    const wire::file_id held = holder_.create("f", cached()).file;
    const std::uint64_t waiting = send_rename(file);
    EXPECT_EQ(exchanges_until_answer(waiting, held, "f", shared), caching_waits_max);
    EXPECT_EQ(client().answer_to(waiting).status(), nt_status::sharing_violation);
}

TEST_F(requests_that_start_again, end_although_the_holder_always_caches_a_file_of_the_renamed_directory) {
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::directory_file;
    const wire::file_id directory = client().create("d", how).file;
    wire::file_id held = holder_.create("d\\0", cached()).file;
    const std::uint64_t waiting = send_rename(directory);
    unsigned exchanges = 0;
    // The rename waits for the first file, and finds the other one cached when it starts again.
    while (exchanges <= 2 * rename_attempts_max and not client().is_answered(waiting)) {
        ++exchanges;
        held = exchange(held, exchanges % 2 == 0 ? "d\\0" : "d\\1", cached());
    }
    EXPECT_EQ(exchanges, rename_attempts_max);
    EXPECT_EQ(client().answer_to(waiting).status(), nt_status::sharing_violation);
}

}  // namespace
}  // namespace sluice::smb_simulation
