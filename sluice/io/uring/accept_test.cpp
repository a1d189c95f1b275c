#include "sluice/io/stream/accept_stream.hpp"

#include <filesystem>
#include <fstream>
#include <optional>

#include "sluice/io/uring/uring_testing.hpp"

namespace sluice::io {
namespace {

using namespace uring_test;

// Returns the submissions of the only ring of this process, according to /proc.
std::optional<unsigned> submissions() {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (std::filesystem::read_symlink(each, gone) != "anon_inode:[io_uring]") continue;
        std::ifstream fdinfo("/proc/self/fdinfo/" + each.path().filename().string());
        for (std::string word; fdinfo >> word;) {
            unsigned count = 0;
            if (word == "SqTail:" and fdinfo >> count) return count;
        }
    }
    return std::nullopt;
}

struct counter {
    int* connections;
    void set_value(result<accepted>&& outcome) noexcept { *connections += outcome ? 1 : 0; }
    void set_done() noexcept {}
};

class uring_accepts : public testing::Test {
protected:
    ~uring_accepts() override {
        stream.cancel();
        while (multiplexer->run().value_or(0) > 0) {}
    }

    void connect_clients(int count) {
        const int before = taken;
        std::vector<socket_handle> clients;
        for (int i = 0; i < count; ++i)
            clients.push_back(socket_handle::connect(listener.local_address().value()).value());
        while (taken < before + count)
            (void)multiplexer->run();
        drain(*multiplexer);
    }

    std::unique_ptr<io_multiplexer> multiplexer = make();
    listening_socket_handle listener = [this] {
        auto made = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
        EXPECT_TRUE(made.set_multiplexer(multiplexer.get()).has_value());
        return made;
    }();
    int taken = 0;
    accept_stream<counter> stream{listener, counter{&taken}};
};

TEST_F(uring_accepts, of_connections_that_arrive_one_by_one_submit_nothing) {
    stream.start();
    drain(*multiplexer);
    const auto before = submissions();
    if (not before) GTEST_SKIP() << "this kernel does not report on its rings";
    for (int i = 0; i < 10; ++i)
        connect_clients(1);
    EXPECT_EQ(submissions(), before);
    connect_clients(20);
    EXPECT_GT(submissions(), before) << "a burst ends it, and later connections begin it again";
    const auto after = submissions();
    connect_clients(1);
    EXPECT_EQ(submissions(), after);
}

}  // namespace
}  // namespace sluice::io
