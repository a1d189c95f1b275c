#include <filesystem>
#include <fstream>

#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/volume/volume.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Share modes, locks and caching belong to a file, independent of the share through which it is
// open.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

class scratch_directory {
public:
    scratch_directory() {
        std::string name = (std::filesystem::temp_directory_path() / "sluice-exclusion-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        path_ = name;
        std::filesystem::create_directory(path_ / "inner");
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    ~scratch_directory() { std::filesystem::remove_all(path_); }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

// A directory of the host as "files", the same one as "other" and, read-only, as "readonly"; and a
// directory in it as "inner". The first client uses "files".
class exclusion : public testing::Test {
protected:
    exclusion() : world_(io::simulation_options{.seed = 1}, 1) {
        serve("before");
        first_ = connect("files");
    }
    ~exclusion() override {
        first_.reset();
        world_.stop();
    }

    void serve(const std::string& comment) {
        std::vector<server::share_configuration> shares;
        const auto add = [&](const char* name, const std::filesystem::path& path, bool read_only) {
            server::share_configuration one;
            one.name = name;
            one.comment = comment;
            one.source = path.string();
            one.is_read_only = read_only;
            one.volume = vfs::host_volume::open(*world_.loop, path.c_str(), {.read_only = read_only}).value();
            shares.push_back(std::move(one));
        };
        add("files", scratch_.path(), false);
        add("other", scratch_.path(), false);
        add("readonly", scratch_.path(), true);
        add("inner", scratch_.path() / "inner", false);
        world_.server->replace_shares(std::move(shares));
    }
    std::unique_ptr<compliant_client> connect(std::string_view share) {
        auto fresh = std::make_unique<compliant_client>(world_, next_seed_++);
        EXPECT_EQ(fresh->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(fresh->connect_tree(share), nt_status::success);
        return fresh;
    }

    static wire::create_args alone() {
        auto how = compliant_client::for_everything();
        how.share_access = wire::share_access::none;
        return how;
    }
    static wire::create_args reading() {
        auto how = compliant_client::for_everything();
        how.desired_access = wire::file_generic_read;
        how.disposition = wire::create_disposition::open;
        return how;
    }
    static wire::create_args directory() {
        auto how = compliant_client::for_everything();
        how.options = wire::create_options::directory_file;
        return how;
    }
    static nt_status lock(compliant_client& by, const wire::file_id& file) {
        const auto element = wire::encode_lock_element(
            {.offset_bytes = 0,
             .length_bytes = 100,
             .flags = wire::lock_flags::exclusive | wire::lock_flags::fail_immediately});
        return by
            .call(command::lock,
                  wire::lock_args{.file = file, .elements = wire::lock_list(std::span(&element, 1))})
            .status();
    }
    static nt_status close(compliant_client& by, const wire::create_reply& one) {
        return by.call(command::close, wire::close_args{.file = one.file}).status();
    }
    template <class Information>
    static nt_status set(compliant_client& by, const wire::create_reply& one,
                         wire::file_information_class what, const Information& information) {
        std::array<std::byte, 256> room{};
        byte_writer writer(room);
        (void)encode(writer, information);
        return by
            .call(command::set_info, wire::set_info_args{.type = wire::info_type::file,
                                                         .information_class = static_cast<std::uint8_t>(what),
                                                         .file = one.file,
                                                         .input = *writer.finish()})
            .status();
    }
    static nt_status rename(compliant_client& by, const wire::create_reply& one, const std::string& target) {
        return set(by, one, wire::file_information_class::rename, wire::rename_information{.target = target});
    }
    static nt_status dispose(compliant_client& by, const wire::create_reply& one) {
        return set(by, one, wire::file_information_class::disposition,
                   wire::disposition_information{.delete_on_close = true});
    }

    scratch_directory scratch_;
    world world_;
    std::uint64_t next_seed_ = 1;
    std::unique_ptr<compliant_client> first_;
};

TEST_F(exclusion, of_share_modes_applies_through_another_share) {
    (void)first_->create("f", alone());
    EXPECT_EQ(connect("other")->try_create("f", reading()), nt_status::sharing_violation);
    EXPECT_EQ(connect("readonly")->try_create("f", reading()), nt_status::sharing_violation);
}

TEST_F(exclusion, of_share_modes_applies_through_a_nested_share) {
    (void)first_->create("inner\\f", alone());
    EXPECT_EQ(connect("inner")->try_create("f", reading()), nt_status::sharing_violation);
}

TEST_F(exclusion, of_locks_applies_through_another_share) {
    ASSERT_EQ(lock(*first_, first_->create("f").file), nt_status::success);
    const auto second = connect("other");
    EXPECT_EQ(lock(*second, second->create("f").file), nt_status::lock_not_granted);
}

TEST_F(exclusion, of_caching_applies_through_another_share) {
    auto caching = compliant_client::for_everything();
    caching.oplock_level = wire::oplock_level::batch;
    const auto held = first_->create("f", caching);
    ASSERT_EQ(held.oplock_level, wire::oplock_level::batch);
    const auto second = connect("other");
    const std::uint64_t waiting = second->send_create("f");
    EXPECT_FALSE(second->is_answered(waiting));
    EXPECT_EQ(close(*first_, held), nt_status::success);
    EXPECT_EQ(second->answer_to(waiting).status(), nt_status::success);
}

TEST_F(exclusion, applies_after_a_reload_with_another_comment) {
    (void)first_->create("alone", alone());
    ASSERT_EQ(lock(*first_, first_->create("locked").file), nt_status::success);
    serve("after");
    const auto second = connect("files");
    EXPECT_EQ(second->try_create("alone", reading()), nt_status::sharing_violation);
    EXPECT_EQ(lock(*second, second->create("locked").file), nt_status::lock_not_granted);
}

TEST_F(exclusion, counts_each_open_file_once_in_the_server_and_once_in_each_share) {
    (void)first_->create("f");
    (void)first_->create("f");
    const auto second = connect("other");
    (void)second->create("f");
    const auto taken = world_.server->snapshot({.has_totals = true});
    EXPECT_EQ(taken.files, 1U);
    for (const auto& share : taken.shares) {
        const bool has_it = share.name == "files" or share.name == "other";
        EXPECT_EQ(share.files, has_it ? 1U : 0U) << share.name;
    }
}

TEST_F(exclusion, refuses_opens_through_any_share_of_a_file_to_be_removed) {
    const auto doomed = first_->create("f");
    ASSERT_EQ(dispose(*first_, doomed), nt_status::success);
    EXPECT_EQ(connect("other")->try_create("f", reading()), nt_status::delete_pending);
}

TEST_F(exclusion, removes_a_file_whose_last_open_is_of_a_read_only_share) {
    const auto doomed = first_->create("f");
    const auto second = connect("readonly");
    const auto reader = second->create("f", reading());
    ASSERT_EQ(dispose(*first_, doomed), nt_status::success);
    EXPECT_EQ(close(*first_, doomed), nt_status::success);
    EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "f"));
    EXPECT_EQ(close(*second, reader), nt_status::success);
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "f"));
}

TEST_F(exclusion, removes_each_name_whose_removal_was_requested) {
    const auto one = first_->create("one");
    for (const char* const name : {"two", "three"})
        std::filesystem::create_hard_link(scratch_.path() / "one", scratch_.path() / name);
    const auto two = first_->create("two");
    const auto three = first_->create("three", reading());
    ASSERT_EQ(dispose(*first_, one), nt_status::success);
    ASSERT_EQ(dispose(*first_, two), nt_status::success);
    for (const auto& each : {one, two, three})
        EXPECT_EQ(close(*first_, each), nt_status::success);
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "one"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "two"));
    EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "three"));
}

TEST_F(exclusion, keeps_a_directory_from_being_renamed_while_another_share_has_files_in_it_open) {
    const auto inner = first_->create("inner", directory());
    {
        const auto second = connect("inner");
        (void)second->create("f");
        EXPECT_EQ(rename(*first_, inner, "renamed"), nt_status::access_denied);
    }
    EXPECT_EQ(rename(*first_, inner, "renamed"), nt_status::success);
}

TEST_F(exclusion, keeps_a_directory_from_being_renamed_while_a_file_in_it_is_open_by_its_second_name) {
    std::ofstream(scratch_.path() / "f") << "f";
    std::filesystem::create_hard_link(scratch_.path() / "f", scratch_.path() / "inner" / "f");
    (void)first_->create("f");
    (void)first_->create("inner\\f");
    EXPECT_EQ(rename(*first_, first_->create("inner", directory()), "renamed"), nt_status::access_denied);
}

// A rename of the directory waits for the handle of the file, and keeps its state; the file is
// removed, and its inode is reused before the rename continues.
TEST_F(exclusion, does_not_pass_from_a_removed_file_to_the_next_file_with_its_inode) {
    auto caching = compliant_client::for_everything();
    caching.oplock_level = wire::oplock_level::batch;
    for (int i = 0; i != 20; ++i) {
        const auto held = first_->create("inner\\f", caching);
        ASSERT_EQ(held.oplock_level, wire::oplock_level::batch);
        const auto second = connect("other");
        const auto inner = second->create("inner", directory());
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        (void)encode(writer, wire::rename_information{.target = "renamed"});
        const wire::set_info_args renaming{
            .type = wire::info_type::file,
            .information_class = static_cast<std::uint8_t>(wire::file_information_class::rename),
            .file = inner.file,
            .input = *writer.finish()};
        const std::uint64_t waiting = second->send(command::set_info, renaming);
        EXPECT_FALSE(second->is_answered(waiting));
        ASSERT_EQ(dispose(*first_, held), nt_status::success);
        first_->begin_compound();
        const std::uint64_t close_task = first_->send(command::close, wire::close_args{.file = held.file});
        const std::uint64_t creating = first_->send_create("g");
        const std::uint64_t opening = first_->send_create("g", reading());
        first_->end_compound();
        EXPECT_EQ(first_->answer_to(close_task).status(), nt_status::success);
        const auto created = first_->answer_to(creating);
        ASSERT_EQ(created.status(), nt_status::success);
        EXPECT_EQ(first_->answer_to(opening).status(), nt_status::success) << "round " << i;
        EXPECT_EQ(close(*first_, wire::decode_create_reply(created.message()).value()), nt_status::success);
        EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "g")) << "removed instead of f";
        std::filesystem::remove(scratch_.path() / "g");
        if (second->answer_to(waiting).status() == nt_status::success)
            std::filesystem::rename(scratch_.path() / "renamed", scratch_.path() / "inner");
    }
}

// Two copies of an image have the same serial number, and their files have the same numbers.
class two_images : public testing::Test {
protected:
    two_images() : world_(io::simulation_options{.seed = 1}, 1) {
        std::vector<server::share_configuration> shares;
        const std::vector<std::byte> original = fat::formatted(20 << 10, "-F 16 -s 8 -f 2 -r 512");
        for (const std::uint64_t number : {1U, 2U}) {
            images_.push_back(std::make_unique<fat::memory_device>(original));
            fat::memory_device& image = *images_.back();
            auto mounted =
                fat::file_system::mount(image, fat::read_geometry(image).value(), world_.clock).value();
            server::share_configuration one;
            one.name = "image" + std::to_string(number);
            one.source = one.name;
            one.volume = std::make_shared<fat::volume>(*world_.loop, std::move(mounted), number);
            shares.push_back(std::move(one));
        }
        shares.push_back({});
        shares.back().name = "again";
        shares.back().volume = shares.front().volume;
        world_.server->replace_shares(std::move(shares));
    }
    ~two_images() override { world_.stop(); }

    std::vector<std::unique_ptr<fat::memory_device>> images_;
    world world_;
};

TEST_F(two_images, with_the_same_serial_number_do_not_exclude_each_other) {
    auto how = compliant_client::for_everything();
    how.share_access = wire::share_access::none;
    compliant_client client(world_);
    ASSERT_EQ(client.log_on("u", "p"), nt_status::success);
    for (const char* const share : {"image1", "image2"}) {
        ASSERT_EQ(client.connect_tree(share), nt_status::success);
        const auto made = client.create("f");
        EXPECT_EQ(client.call(command::close, wire::close_args{.file = made.file}).status(),
                  nt_status::success);
    }
    ASSERT_EQ(client.connect_tree("image1"), nt_status::success);
    EXPECT_EQ(client.try_create("f", how), nt_status::success);
    ASSERT_EQ(client.connect_tree("image2"), nt_status::success);
    EXPECT_EQ(client.try_create("f", how), nt_status::success);
    ASSERT_EQ(client.connect_tree("again"), nt_status::success);
    EXPECT_EQ(client.try_create("f", how), nt_status::sharing_violation) << "it is the first image";
}

}  // namespace
}  // namespace sluice::smb_simulation
