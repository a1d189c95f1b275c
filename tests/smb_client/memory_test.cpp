// The behaviour of the client without memory for a request. A separate program, because it replaces
// aligned_alloc, which allocates the buffers.

#include <algorithm>
#include <cstddef>
#include <limits>

#include "tests/smb_client/rig.hpp"

namespace {

std::size_t refused_from = std::numeric_limits<std::size_t>::max();  // bytes
unsigned refusals = 0;

}  // namespace

extern "C" {
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    if (bytes < refused_from) return __libc_memalign(alignment, bytes);
    ++refusals;
    return nullptr;
}
}

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component

// A request for which there is no memory to encrypt it breaks its channel, because its message id
// is used up, and is repeated on the other channels, as after any loss.
TEST(client_without_memory, repeats_a_write_once_for_each_channel_and_then_reports_the_reason) {
    constexpr unsigned channels = 3;
    rig world;
    connection_options options{
        .server_name = "server", .encryption = encryption::required, .channels = channels};
    options.client_guid.bytes[0] = std::byte{1};  // all channels belong to one client
    logged_on client(world, options);
    ASSERT_FALSE(client.error) << client.error->message();
    std::vector<std::unique_ptr<connection>> further;
    for (unsigned i = 1; i != channels; ++i) {
        auto opened = world.wait_for(connection::open(world.dependencies(), world.connect(), options));
        ASSERT_TRUE(opened) << opened.error().message();
        further.push_back(opened->release());
        ASSERT_TRUE(world.wait_for(client.session->bind(*further.back(), rig::who())));
    }
    const open_options how{.access = smb::wire::file_generic_read | smb::wire::file_generic_write,
                           .disposition = smb::wire::create_disposition::open_if};
    const auto file = world.wait_for(client.tree->open("f", how));
    ASSERT_TRUE(file) << file.error().message();

    const std::vector<std::byte> data(200'000);
    refused_from = data.size();
    const auto wrote = world.wait_for((*file)->co_write(data, 0));
    refused_from = std::numeric_limits<std::size_t>::max();
    ASSERT_FALSE(wrote);
    EXPECT_EQ(wrote.error().code(), ENOMEM) << wrote.error().message();
    EXPECT_EQ(refusals, channels);
    EXPECT_TRUE(client.connection->is_broken());
    EXPECT_TRUE(std::ranges::all_of(further, &connection::is_broken));
    EXPECT_FALSE(world.wait_for((*file)->co_write(data, 0))) << "no channel is left";
    for (const auto& each : further)
        world.wait_for(each->close());
}

}  // namespace
}  // namespace sluice::smb_client_testing
