#include <unistd.h>

#include <filesystem>
#include <map>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/net/server_tables_testing.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/host/host_volume.hpp"

// How often each command locks the mutexes of the server, once the client has sent it before. A
// change of these numbers is a change of how well the server scales: smb_scaling.md, in
// docs/benchmarks, has the cost. The share is a directory of the host.
//
// An "other leaf" is the rights cache of the tree, or the order of the requests that list a
// directory.

namespace sluice::smb_simulation {
namespace {

using server::lock_observer;
using server::lock_rank;
using server::server_context;

class mutexes_of_a_command : public command_test {
protected:
    mutexes_of_a_command() {
        std::filesystem::create_directories(directory_);
        std::vector<server::share_configuration> shares(1);
        shares[0].name = "files";
        shares[0].source = directory_.string();  // not the volume in memory
        shares[0].volume = vfs::host_volume::open(*where_.loop, directory_.c_str()).value();
        server_of_test().replace_shares(std::move(shares));
        EXPECT_EQ(client().connect_tree("files"), nt_status::success);
        add_parts();
        self_ = this;
        lock_observer::locking = [](lock_rank rank, const void* which) noexcept {
            self_->record(rank, which);
        };
    }
    ~mutexes_of_a_command() override {
        lock_observer::locking = nullptr;
        std::filesystem::remove_all(directory_);
    }

    void SetUp() override {
        if (SLUICE_CHECKS_MUTEXES == 0)
            GTEST_SKIP() << "mutexes are counted in builds that check their order";
    }

    /// Returns the mutexes that the second of two equal requests locks, as "file 1, session 2".
    template <class Request>
    [[nodiscard]] std::string locked_by(Request request) {
        request();
        counts_.clear();
        request();
        std::string text;
        for (const auto& [name, count] : counts_)
            text += (text.empty() ? "" : ", ") + name + ' ' + std::to_string(count);
        return text;
    }

    [[nodiscard]] wire::file_id open(std::string_view name, wire::create_disposition disposition) {
        auto how = compliant_client::for_everything();
        how.disposition = disposition;
        return client().create(name, how).file;
    }

private:
    struct part {
        std::string name;
        const std::byte* begin = nullptr;
        std::size_t bytes = 0;
    };

    template <class Part>
    void add(std::string name, const Part& which) {
        parts_.push_back({std::move(name), reinterpret_cast<const std::byte*>(&which), sizeof which});
    }
    void add_parts() {
        server_context& host = server_of_test().context();
        server::naming_state& names = host.names_of(host.find_share("files")->volume(), false);
        add("rename barrier", names.rename_barrier());
        add("pending creates", names.creates());
        add("naming states", host.naming);
        server::for_each_table(host, [this](const char* name, const auto& table) { add(name, table); });
    }

    // The states of the first 64 file systems are found without a mutex. Earlier tests of the
    // process may have had more.
    void record(lock_rank rank, const void* which) noexcept {
        const std::string name = name_of(rank, which);
        if (name != "naming states") ++counts_[name];
    }
    [[nodiscard]] std::string name_of(lock_rank rank, const void* which) const {
        const auto* const at = static_cast<const std::byte*>(which);
        for (const part& each : parts_)
            if (at >= each.begin and at < each.begin + each.bytes) return each.name;
        switch (rank) {
            case lock_rank::pipe:
                return "pipe";
            case lock_rank::registry:
                return "registry";
            case lock_rank::session:
                return "session";
            case lock_rank::open:
                return "open";
            case lock_rank::file:
                return "file";
            case lock_rank::client:
                return "client";
            case lock_rank::leaf:
                return "other leaf";
            case lock_rank::memory:
                return "other memory";
        }
        return "unknown rank";
    }

    static inline mutexes_of_a_command* self_ = nullptr;
    std::filesystem::path directory_ =
        std::filesystem::path(testing::TempDir()) / ("sluice-mutex-counts-" + std::to_string(::getpid()));
    std::vector<part> parts_;
    std::map<std::string, unsigned> counts_;
};

TEST_F(mutexes_of_a_command, are_none_for_an_echo) {
    EXPECT_EQ(locked_by([&] { EXPECT_EQ(status_of(command::echo, wire::echo_args{}), nt_status::success); }),
              "");
}

TEST_F(mutexes_of_a_command, are_local_to_the_session_and_the_open_for_reads_and_writes) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(locked_by([&] { EXPECT_EQ(write(file, "text"), nt_status::success); }),
              "file 2, open 2, open table 1, session 1");
    EXPECT_EQ(locked_by([&] { EXPECT_EQ(content_of(file), "text"); }), "open 2, open table 1, session 1");
    EXPECT_EQ(locked_by([&] {
                  EXPECT_EQ(query(file, wire::file_information_class::network_open).status(),
                            nt_status::success);
              }),
              "open 2, open table 1, session 1");
}

TEST_F(mutexes_of_a_command, are_counted_for_open_and_close) {
    EXPECT_EQ(close(open("f", wire::create_disposition::create)), nt_status::success);
    EXPECT_EQ(locked_by([&] {
                  const wire::file_id file = open("f", wire::create_disposition::open);
                  EXPECT_EQ(close(file), nt_status::success);
              }),
              "file 4, file table 7, open 7, open table 7, other leaf 1, quotas 2, rename barrier 2, "
              "session 4");
}

TEST_F(mutexes_of_a_command, are_counted_for_create_and_delete) {
    EXPECT_EQ(locked_by([&] {
                  const wire::file_id file = open("new", wire::create_disposition::create);
                  EXPECT_EQ(set_information(file, wire::file_information_class::disposition,
                                            wire::disposition_information{.delete_on_close = true}),
                            nt_status::success);
                  EXPECT_EQ(close(file), nt_status::success);
              }),
              "file 13, file table 12, open 9, open table 8, other leaf 1, pending creates 3, "
              "quotas 2, rename barrier 2, session 5");
}

TEST_F(mutexes_of_a_command, are_counted_for_a_listing) {
    const wire::file_id directory = open_directory("d");
    for (const std::string_view name : {"d\\a", "d\\b", "d\\c"})
        EXPECT_EQ(close(open(name, wire::create_disposition::create)), nt_status::success);
    const std::string all = wire::utf16_of("*").value();
    const wire::query_directory_args asked{.information_class = static_cast<wire::directory_class>(
                                               wire::file_information_class::id_both_directory),
                                           .flags = wire::query_directory_flags::restart_scans,
                                           .file = directory,
                                           .pattern = std::as_bytes(std::span(all)),
                                           .output_bytes_max = 4096};
    EXPECT_EQ(locked_by([&] { EXPECT_EQ(status_of(command::query_directory, asked), nt_status::success); }),
              "open 3, open table 1, other leaf 2, session 1");
}

}  // namespace
}  // namespace sluice::smb_simulation
