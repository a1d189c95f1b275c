#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/volume/volume.hpp"
#include "sluice/smb/server/net/read_path.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The data that READ returns on each of its I/O paths, and the choice of path if files and clients
// misbehave.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using server::read_path;
using wire::command;
using wire::nt_status;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t file_bytes = 9 * mib + 12'345;

// Returns bytes that differ at offsets that are multiples of a power of two apart.
std::byte byte_at(std::uint64_t offset) {
    return static_cast<std::byte>((offset * 2'654'435'761U) >> 24);
}

class scratch_directory {
public:
    scratch_directory() {
        std::string name = (std::filesystem::temp_directory_path() / "sluice-data-path-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        path_ = name;
        std::vector<char> content(file_bytes);
        for (std::size_t i = 0; i != file_bytes; ++i)
            content[i] = static_cast<char>(byte_at(i));
        std::ofstream(path_ / "big").write(content.data(), file_bytes);
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    ~scratch_directory() { std::filesystem::remove_all(path_); }

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

// A server whose share is a directory of this machine, and a client that has a file in it open.
class data_path : public testing::Test {
protected:
    data_path() { begin({.seed = 1}); }
    ~data_path() override { end(); }

    using volume_maker = std::function<std::unique_ptr<vfs::volume>(io::io_multiplexer&)>;

    void begin(const io::simulation_options& how) {
        begin(how, [&](io::io_multiplexer& loop) -> std::unique_ptr<vfs::volume> {
            return vfs::host_volume::open(loop, directory_.path().c_str()).value();
        });
    }
    void begin(const io::simulation_options& how, const volume_maker& make_volume) {
        world_ = std::make_unique<world>(how, 1);
        std::vector<server::share_configuration> shares(1);
        shares[0].name = "files";
        shares[0].source = directory_.path().string();  // not the volume in memory
        shares[0].volume = make_volume(*world_->loop);
        world_->server->replace_shares(std::move(shares));
        client_ = std::make_unique<compliant_client>(*world_);
        ASSERT_EQ(client_->log_on("u", "p"), nt_status::success);
        ASSERT_EQ(client_->connect_tree("files"), nt_status::success);
        client_->credits_wanted = 512;
        while (client_->credits() < 1500)
            ASSERT_EQ(client_->call(command::echo, wire::echo_args{}).status(), nt_status::success);
        file_ = client_->create("big").file;
    }
    void end() {
        client_.reset();
        if (world_ != nullptr) world_->stop();
        world_.reset();
    }

    std::uint64_t send_read(std::uint64_t offset, std::size_t bytes, std::uint32_t minimum = 0) {
        client_->charge = static_cast<std::uint16_t>(wire::credit_charge_of(bytes));
        const std::uint64_t id =
            client_->send(command::read, wire::read_args{.file = file_,
                                                         .offset_bytes = offset,
                                                         .length_bytes = static_cast<std::uint32_t>(bytes),
                                                         .minimum_bytes = minimum});
        client_->charge = 1;
        return id;
    }
    // Checks that the reply to a READ has the content of the file there, and its length.
    void expect_content(std::uint64_t id, std::uint64_t offset, std::size_t bytes) {
        const auto answer = client_->answer_to(id);
        ASSERT_EQ(answer.status(), nt_status::success);
        const auto reply = wire::decode_read_reply(answer.message());
        ASSERT_TRUE(reply);
        ASSERT_EQ(reply->data.size(), bytes);
        for (std::size_t i = 0; i != bytes; ++i)
            ASSERT_EQ(reply->data[i], byte_at(offset + i)) << "at " << offset + i;
    }
    [[nodiscard]] std::uint64_t taken(read_path which) const {
        return world_->server->context().loops().front()->data.counted.of(which).requests;
    }
    // Lets the server work while the client reads nothing.
    void let_server_work() { world_->run(); }

    scratch_directory directory_;
    std::unique_ptr<world> world_;
    std::unique_ptr<compliant_client> client_;
    wire::file_id file_{};
};

TEST_F(data_path, uses_the_page_cache_for_large_reads_and_a_buffer_for_small_ones) {
    expect_content(send_read(4097, 2 * mib), 4097, 2 * mib);
    EXPECT_EQ(taken(read_path::spliced), 1U);
    expect_content(send_read(1, 4096), 1, 4096);
    EXPECT_EQ(taken(read_path::spliced), 1U);
    EXPECT_EQ(taken(read_path::copied), 1U);
}

TEST_F(data_path, returns_the_bytes_before_the_end_of_the_file) {
    expect_content(send_read(file_bytes - mib, 8 * mib), file_bytes - mib, mib);
    EXPECT_EQ(taken(read_path::spliced), 1U);
    expect_content(send_read(file_bytes - 10, mib), file_bytes - 10, 10);
    EXPECT_EQ(client_->answer_to(send_read(file_bytes, mib)).status(), nt_status::end_of_file);
    EXPECT_EQ(client_->answer_to(send_read(file_bytes - mib, 2 * mib, mib + 1)).status(),
              nt_status::end_of_file);
    EXPECT_EQ(taken(read_path::spliced), 1U);
}

TEST_F(data_path, keeps_concurrent_replies_of_all_paths_complete_and_in_order) {
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
        end();
        begin(io::simulation_options::adversarial(seed));
        std::vector<std::uint64_t> ids;
        for (unsigned i = 0; i != 12; ++i) {
            ids.push_back(send_read(i * 700'001, i % 3 == 0 ? 100 : 300'000 + i));
            (void)client_->send(command::echo, wire::echo_args{});
        }
        for (unsigned i = 0; i != 12; ++i)
            expect_content(ids[i], i * 700'001, i % 3 == 0 ? 100 : 300'000 + i);
        EXPECT_EQ(taken(read_path::spliced), 8U) << "seed " << seed;
    }
}

TEST_F(data_path, uses_a_buffer_for_a_compound) {
    client_->begin_compound();
    const std::uint64_t first = send_read(0, mib);
    const std::uint64_t second = send_read(mib, mib);
    client_->end_compound();
    expect_content(first, 0, mib);
    expect_content(second, mib, mib);
    EXPECT_EQ(taken(read_path::spliced), 0U);
    EXPECT_EQ(taken(read_path::copied), 2U);
}

TEST_F(data_path, sends_the_announced_length_although_the_file_is_truncated_in_the_meantime) {
    const std::uint64_t first = send_read(0, 4 * mib);
    const std::uint64_t second = send_read(4 * mib, 4 * mib);
    let_server_work();  // until the socket is full, within the first reply
    std::filesystem::resize_file(directory_.path() / "big", 6 * mib);
    expect_content(first, 0, 4 * mib);
    const auto answer = client_->answer_to(second);
    ASSERT_EQ(answer.status(), nt_status::success);
    const bytes_view data = wire::decode_read_reply(answer.message())->data;
    ASSERT_EQ(data.size(), 4 * mib);
    EXPECT_EQ(data[2 * mib - 1], byte_at(6 * mib - 1));
    for (std::size_t i = 2 * mib; i != 4 * mib; ++i)
        ASSERT_EQ(data[i], std::byte{0}) << "removed data reads as zeros";
    EXPECT_EQ(client_->call(command::echo, wire::echo_args{}).status(), nt_status::success)
        << "the stream is still synchronised";
}

TEST_F(data_path, outlives_its_open_and_its_name) {
    const std::uint64_t read = send_read(mib, 8 * mib);
    const std::uint64_t close = client_->send(command::close, wire::close_args{.file = file_});
    let_server_work();
    std::filesystem::remove(directory_.path() / "big");
    expect_content(read, mib, 8 * mib);
    EXPECT_EQ(client_->answer_to(close).status(), nt_status::success);
}

// The end of the fixture checks that no resources remain.
TEST_F(data_path, ends_if_a_client_disconnects_in_the_middle) {
    for (unsigned i = 0; i != 3; ++i)
        (void)send_read(i * mib, 8 * mib);
    let_server_work();
    EXPECT_EQ(taken(read_path::spliced), 3U);
    client_.reset();
}

TEST_F(data_path, ends_if_the_server_stops_in_the_middle) {
    (void)send_read(0, 8 * mib);
    let_server_work();
    world_->stop();
    world_->run();
    client_.reset();
    world_.reset();
}

TEST_F(data_path, returns_old_or_new_bytes_of_concurrent_changes_and_stays_synchronised) {
    const std::uint64_t read = send_read(0, 8 * mib);
    const std::vector<std::byte> fresh(2048, std::byte{0xee});
    const std::uint64_t write = client_->send(
        command::write, wire::write_args{.file = file_, .offset_bytes = 7 * mib, .data = fresh});
    const auto answer = client_->answer_to(read);
    ASSERT_EQ(answer.status(), nt_status::success);
    const bytes_view data = wire::decode_read_reply(answer.message())->data;
    for (std::size_t i = 0; i != 8 * mib; ++i) {
        const bool is_written = i >= 7 * mib and i < 7 * mib + fresh.size();
        ASSERT_TRUE(data[i] == byte_at(i) or (is_written and data[i] == std::byte{0xee})) << i;
    }
    EXPECT_EQ(client_->answer_to(write).status(), nt_status::success);
}

// The same, with an image in which the file has pieces of 192 KiB, between those of another file.
class data_path_of_image : public data_path {
protected:
    static constexpr std::size_t piece_bytes = 192U << 10;
    static constexpr std::size_t pieces = 40;
    static constexpr std::size_t written_bytes = pieces * piece_bytes;

    data_path_of_image() {
        end();
        make_image();
        begin_with_image({.seed = 1});
    }
    ~data_path_of_image() override { end(); }

    void begin_with_image(const io::simulation_options& how) {
        begin(how, [&](io::io_multiplexer& loop) -> std::unique_ptr<vfs::volume> {
            auto mounted = mount();
            system_ = mounted.get();
            return std::make_unique<fat::volume>(loop, std::move(mounted), 1U);
        });
    }
    // Extends the file to this length.
    void lengthen(std::uint64_t bytes) {
        auto file = system_->find("big").value();
        ASSERT_TRUE(system_->truncate(*file, bytes));
    }
    void write(std::string_view path, std::span<const std::byte> what, std::uint64_t offset) {
        fat::run_list::hint hint;
        auto file = system_->find(path).value();
        ASSERT_TRUE(system_->write(*file, hint, what, offset));
    }
    // Fills the free space of the volume.
    void fill_up(std::byte with) {
        auto file = system_->create("others", false, fat::attributes::none).value();
        const std::vector<std::byte> part(64U << 10, with);
        fat::run_list::hint hint;
        std::uint64_t done = 0;
        while (system_->write(*file, hint, part, done))
            done += part.size();
        ASSERT_GT(done, std::uint64_t{piece_bytes});
    }

    fat::file_system* system_ = nullptr;

private:
    [[nodiscard]] std::unique_ptr<fat::file_system> mount() {
        return fat::file_system::mount(*device_, fat::read_geometry(*device_).value(), clock_).value();
    }
    void make_image() {
        const auto image = fat::formatted(20 << 10, "-F 16 -s 8 -R 8 -f 2 -r 512");
        const auto path = directory_.path() / "image";
        std::ofstream(path).write(reinterpret_cast<const char*>(image.data()),
                                  static_cast<std::streamsize>(image.size()));
        device_.emplace(
            fat::file_device::over(io::file_handle::open({}, path.string(), io::mode::write).value())
                .value());
        auto mounted = mount();
        system_ = mounted.get();
        for (const char* const name : {"big", "between"})
            ASSERT_TRUE(system_->create(name, false, fat::attributes::none));
        std::vector<std::byte> part(piece_bytes);
        for (std::size_t i = 0; i != pieces; ++i) {
            for (std::size_t j = 0; j != piece_bytes; ++j)
                part[j] = byte_at(i * piece_bytes + j);
            write("big", part, i * piece_bytes);
            // One more cluster: the next piece of the file comes after it.
            write("between", std::span(part).first(4096), i * 4096);
        }
    }

    simulated_clock clock_;
    std::optional<fat::file_device> device_;
};

TEST_F(data_path_of_image, uses_the_page_cache_for_large_reads_run_by_run) {
    ASSERT_TRUE(system_->pins_extents());
    const auto file = system_->find("big").value();
    EXPECT_GE(system_->pin_extents(*file, {.offset = 0, .length = 2 * mib}, 100).value().runs.size(), 10U);
    expect_content(send_read(4097, 2 * mib), 4097, 2 * mib);
    EXPECT_EQ(taken(read_path::spliced), 1U);
    expect_content(send_read(written_bytes - mib, 8 * mib), written_bytes - mib, mib);
    EXPECT_EQ(taken(read_path::spliced), 2U);
    expect_content(send_read(1, 60'000), 1, 60'000);
    EXPECT_EQ(taken(read_path::copied), 1U);
}

TEST_F(data_path_of_image, returns_zeros_for_unwritten_ranges) {
    lengthen(written_bytes + 200'000);
    const auto answer = client_->answer_to(send_read(written_bytes - 100'000, mib));
    ASSERT_EQ(answer.status(), nt_status::success);
    const bytes_view data = wire::decode_read_reply(answer.message())->data;
    ASSERT_EQ(data.size(), 300'000U);
    for (std::size_t i = 0; i != data.size(); ++i)
        ASSERT_EQ(data[i], i < 100'000 ? byte_at(written_bytes - 100'000 + i) : std::byte{0}) << i;
    EXPECT_EQ(taken(read_path::spliced), 1U);
}

TEST_F(data_path_of_image, keeps_concurrent_replies_complete_and_in_order) {
    for (const std::uint64_t seed : {1, 2, 3}) {
        end();
        begin_with_image(io::simulation_options::adversarial(seed));
        std::vector<std::uint64_t> ids;
        for (unsigned i = 0; i != 9; ++i)
            ids.push_back(send_read(i * 700'001, i % 3 == 0 ? 100 : 300'000 + i));
        for (unsigned i = 0; i != 9; ++i)
            expect_content(ids[i], i * 700'001, i % 3 == 0 ? 100 : 300'000 + i);
        EXPECT_EQ(taken(read_path::spliced), 6U) << "seed " << seed;
    }
}

TEST_F(data_path_of_image, uses_a_buffer_for_a_file_in_many_small_pieces) {
    file_ = client_->create("between").file;
    const auto answer = client_->answer_to(send_read(0, 128U << 10));
    EXPECT_EQ(wire::decode_read_reply(answer.message())->data.size(), 128U << 10);
    EXPECT_EQ(taken(read_path::spliced), 0U);
    EXPECT_EQ(taken(read_path::copied), 1U);
}

TEST_F(data_path_of_image, never_returns_data_of_other_files_in_freed_clusters) {
    const std::uint64_t read = send_read(0, 7 * mib);
    (void)client_->send(command::close, wire::close_args{.file = file_});
    let_server_work();  // until the socket is full
    EXPECT_EQ(taken(read_path::spliced), 1U);
    ASSERT_TRUE(system_->remove(*system_->find("big").value()));
    ASSERT_TRUE(system_->commit());
    fill_up(std::byte{0xee});
    const auto answer = client_->answer_to(read);
    ASSERT_EQ(answer.status(), nt_status::success);
    const bytes_view data = wire::decode_read_reply(answer.message())->data;
    ASSERT_EQ(data.size(), 7 * mib);
    for (std::size_t i = 0; i != data.size(); ++i)
        ASSERT_TRUE(data[i] == byte_at(i) or data[i] == std::byte{0}) << i;
}

class data_path_in_memory : public served {};

TEST_F(data_path_in_memory, uses_a_buffer_and_a_client_that_reads_nothing_holds_few_of_them) {
    client().credits_wanted = 512;
    while (client().credits() < 1500)
        ASSERT_EQ(client().call(command::echo, wire::echo_args{}).status(), nt_status::success);
    const wire::file_id file = client().create("f").file;
    std::vector<std::byte> piece(2048);
    for (std::size_t i = 0; i != piece.size(); ++i)
        piece[i] = byte_at(i);
    for (std::uint64_t offset : {std::uint64_t{0}, mib - piece.size()})
        ASSERT_EQ(
            client()
                .call(command::write, wire::write_args{.file = file, .offset_bytes = offset, .data = piece})
                .status(),
            nt_status::success);
    client().charge = 16;
    std::vector<std::uint64_t> reads;
    for (unsigned i = 0; i != 32; ++i)
        reads.push_back(client().send(command::read, wire::read_args{.file = file, .length_bytes = mib}));
    client().charge = 1;
    // A frame per request, and buffers only for the replies that are being sent.
    EXPECT_LE(server_of_test().gauges().buffers, 32U + 6U);
    EXPECT_EQ(server_of_test().context().loops().front()->data.counted.of(read_path::spliced).requests, 0U);
    for (const std::uint64_t id : reads) {
        const auto answer = client().answer_to(id);
        ASSERT_EQ(answer.status(), nt_status::success);
        const bytes_view data = wire::decode_read_reply(answer.message())->data;
        ASSERT_EQ(data.size(), mib);
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), data.begin()));
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), data.end() - piece.size()));
    }
}

TEST(read_path_table, protects_first_and_splices_only_large_files_of_the_host) {
    using server::path_of;
    const server::read_facts large{.has_host_file = true, .bytes = mib};
    static_assert(path_of({.is_signed = true, .is_encrypted = true, .has_host_file = true, .bytes = mib}) ==
                  read_path::encrypted);
    EXPECT_EQ(path_of(large), read_path::spliced);
    for (auto change : {+[](server::read_facts& f) { f.is_compounded = true; },
                        +[](server::read_facts& f) { f.has_host_file = false; },
                        +[](server::read_facts& f) { f.bytes = server::spliced_bytes_min - 1; }}) {
        server::read_facts other = large;
        change(other);
        EXPECT_EQ(path_of(other), read_path::copied);
    }
    EXPECT_EQ(path_of({.is_signed = true, .has_host_file = true, .bytes = mib}), read_path::signed_);
}

}  // namespace
}  // namespace sluice::smb_simulation
