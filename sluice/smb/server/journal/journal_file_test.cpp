#include "sluice/smb/server/journal/journal_file.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "sluice/smb/server/journal/crc32c.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_testing.hpp"
#include "sluice/smb/server/journal/journal_version.hpp"

namespace sluice::smb::server {
namespace {

using namespace std::chrono_literals;
namespace format = journal_format;
namespace fs = std::filesystem;

class journal_file_test : public testing::Test {
protected:
    void SetUp() override {
        std::string base = (fs::temp_directory_path() / "sluice-journal-XXXXXX").string();
        ASSERT_NE(::mkdtemp(base.data()), nullptr);
        base_ = base;
        place_ = {.directory = (base_ / "state").string(), .user_id = ::geteuid()};
    }
    void TearDown() override { fs::remove_all(base_); }

    [[nodiscard]] result<std::unique_ptr<journal_storage>> open_storage(deadline within = deadline::zero()) {
        return open_journal_file(place_, identity_, within);
    }
    [[nodiscard]] std::shared_ptr<handle_journal> open() {
        auto storage = open_storage();
        EXPECT_TRUE(storage.has_value()) << storage.error().message();
        auto journal = handle_journal::open(*std::move(storage), identity_,
                                            {.slots_at_most = handle_journal::slots_max, .process_id = 4711});
        EXPECT_TRUE(journal.has_value());
        return *std::move(journal);
    }
    [[nodiscard]] std::string error_text() {
        const auto storage = open_storage();
        return storage ? std::string() : storage.error().message();
    }
    [[nodiscard]] fs::path file() const { return base_ / "state" / "handles-abc-1f"; }

    fs::path base_;
    journal_place place_;
    journal_identity identity_{.boot = {std::byte{7}}, .device = 0xabc, .inode = 0x1f, .born = -1};
};

TEST_F(journal_file_test, is_created_for_its_owner_only) {
    EXPECT_EQ(open()->origin(), journal_origin::fresh);
    EXPECT_EQ(fs::status(base_ / "state").permissions(), fs::perms::owner_all);
    EXPECT_EQ(fs::status(file()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(fs::file_size(file()), format::header_bytes);
}

TEST_F(journal_file_test, is_left_as_it_is_if_a_later_version_has_written_it) {
    const std::string name = file().filename().string();
    ASSERT_FALSE(later_version_in_file(place_, name)) << "there is none";
    const auto read_all = [&] {
        std::ifstream from(file(), std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(from), {});
    };
    (void)open();
    EXPECT_EQ(later_version_in_file(place_, name).value(), std::nullopt) << "it has the present version";
    std::string text = read_all();
    format::header header{};
    std::memcpy(&header, text.data(), sizeof header);
    header.version = le32(format::version + 1);
    header.checksum = le32(crc32c(*bytes_of(header).first(offsetof(format::header, checksum))));
    std::memcpy(text.data(), &header, sizeof header);
    std::ofstream(file(), std::ios::binary) << text;
    EXPECT_EQ(later_version_in_file(place_, name).value(), format::version + 1);
    EXPECT_EQ(read_all(), text);
    fs::resize_file(file(), 10);
    EXPECT_EQ(later_version_in_file(place_, name).value(), std::nullopt) << "damage is not a version";
}

TEST_F(journal_file_test, has_the_records_of_an_earlier_process) {
    {
        const auto journal = open();
        journal->begin_service();
        const auto slot = std::make_unique<handle_journal::slot>(journal->reserve().value());
        EXPECT_TRUE(slot->store(owned_record(5).record));
        {
            auto ended = journal->reserve().value();
            EXPECT_TRUE(ended.store(owned_record(6).record));
        }
        journal->freeze();  // before the end of `slot`
    }
    const auto journal = open();
    const auto found = journal->take_recovered();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].record == owned_record(5).record);
    EXPECT_EQ(fs::file_size(file()), format::header_bytes + format::slots_per_step * format::slot_bytes);
}

TEST_F(journal_file_test, excludes_a_second_server_and_names_the_first) {
    const auto journal = open();
    EXPECT_NE(error_text().find("handles-abc-1f (held by process 4711)"), std::string::npos) << error_text();
    EXPECT_EQ(open_storage().error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(open_storage(20ms).error(), std::errc::device_or_resource_busy);
    identity_.inode = 0x20;
    EXPECT_TRUE(open_storage().has_value()) << "the journal of another share";
}

TEST_F(journal_file_test, waits_for_a_server_that_is_ending) {
    auto first = open();
    const std::jthread ends([&first] {
        std::this_thread::sleep_for(20ms);
        first.reset();
    });
    EXPECT_TRUE(open_storage(deadline()).has_value());
}

TEST_F(journal_file_test, is_refused_in_a_directory_that_is_not_private) {
    ASSERT_EQ(::mkdir(place_.directory.c_str(), 0755), 0);
    ASSERT_EQ(::chmod(place_.directory.c_str(), 0755), 0);
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
    ASSERT_EQ(::chmod(place_.directory.c_str(), 0500), 0);
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
    ASSERT_EQ(::chmod(place_.directory.c_str(), 0700), 0);
    EXPECT_TRUE(open_storage().has_value());
    ++place_.user_id;
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
}

TEST_F(journal_file_test, is_refused_if_the_directory_is_a_link_a_file_or_without_a_parent) {
    ASSERT_EQ(::mkdir((base_ / "other").c_str(), 0700), 0);
    ASSERT_EQ(::symlink("other", place_.directory.c_str()), 0);
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
    fs::remove(place_.directory);
    std::ofstream(place_.directory) << "x";
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
    place_.directory = (base_ / "missing" / "state").string();
    EXPECT_EQ(open_storage().error(), std::errc::no_such_file_or_directory);
}

TEST_F(journal_file_test, is_refused_if_it_is_a_link_or_has_another_mode_name_or_kind) {
    ASSERT_TRUE(open_storage().has_value());
    ASSERT_EQ(::chmod(file().c_str(), 0640), 0);
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
    ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
    fs::create_hard_link(file(), base_ / "second");
    EXPECT_EQ(open_storage().error(), std::errc::operation_not_permitted);
    fs::remove(file());
    ASSERT_EQ(::symlink((base_ / "second").c_str(), file().c_str()), 0);
    EXPECT_EQ(open_storage().error(), std::errc::too_many_symbolic_link_levels);
    fs::remove(file());
    fs::create_directory(file());
    EXPECT_FALSE(open_storage().has_value());
    fs::remove(file());
    ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
    EXPECT_FALSE(open_storage().has_value());
}

TEST_F(journal_file_test, of_any_content_is_opened_and_of_any_length_up_to_its_bound) {
    ASSERT_TRUE(open_storage().has_value());
    seeded_random random(5);
    for (const std::size_t length : {1UL, 71UL, 72UL, 4095UL, 4096UL, 4097UL, 20'000UL}) {
        std::string text(length, '\0');
        for (char& each : text)
            each = static_cast<char>(random.next_u64());
        std::ofstream(file(), std::ios::trunc) << text;
        const auto journal = open();
        EXPECT_EQ(journal->origin(), journal_origin::unknown);
        EXPECT_EQ(fs::file_size(file()), format::header_bytes);
        EXPECT_TRUE(journal->reserve().has_value());
    }
    fs::resize_file(file(), std::uint64_t{1} << 30);
    EXPECT_EQ(open_storage().error(), std::errc::file_too_large);
}

TEST_F(journal_file_test, is_copied_after_three_attempts) {
    {
        const auto journal = open();
        auto slot = journal->reserve().value();
        EXPECT_TRUE(slot.store(owned_record(1).record));
    }
    for (std::uint32_t attempt = 0; attempt != handle_journal::attempts_max; ++attempt)
        EXPECT_EQ(open()->take_recovered().size(), 1U);
    const auto journal = open();
    EXPECT_EQ(journal->origin(), journal_origin::set_aside);
    EXPECT_FALSE(journal->copy_error().has_value());
    EXPECT_TRUE(journal->take_recovered().empty());
    EXPECT_EQ(fs::file_size(file().string() + ".set-aside"),
              format::header_bytes + format::slots_per_step * format::slot_bytes);
}

TEST_F(journal_file_test, is_of_the_present_boot) {
    const auto boot = present_boot();
    ASSERT_TRUE(boot.has_value());
    EXPECT_NE(*boot, (std::array<std::byte, 16>{}));
    EXPECT_EQ(*boot, present_boot().value());
}

// The child shares with the test the number of the record that it stores, and of the last one that
// it has stored.
struct progress {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> done{0};
};

// Stores records in two slots, one after the other, until it is killed.
[[noreturn]] void store_forever(handle_journal& journal, progress& shared, std::uint64_t next) {
    auto slot = journal.reserve();
    if (not slot) ::_exit(2);
    for (;; ++next) {
        const owned_record owned(next);
        shared.begun.store(next);
        if (not slot->store(owned.record)) ::_exit(3);
        shared.done.store(next);
        if (next % 16 != 0) continue;
        slot->clear();
        shared.done.store(next + 1);  // neither of the two is expected any more
        ++next;
    }
}

TEST_F(journal_file_test, has_the_last_record_of_a_killed_process_or_the_one_before_but_no_mixture) {
    seeded_random random(2026);
    auto* const shared =
        new (::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            progress;
    std::size_t recovered = 0;
    for (std::uint64_t round = 1; round != 60; ++round) {
        const std::uint64_t first = round * 1'000'000 + 1;
        shared->begun.store(0);
        shared->done.store(0);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            auto storage = open_journal_file(place_, identity_, 10s);
            if (not storage) ::_exit(4);
            auto journal = handle_journal::open(*std::move(storage), identity_);
            if (not journal) ::_exit(5);
            store_forever(**journal, *shared, first);
        }
        while (shared->done.load() == 0)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(1500)));
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
        const auto journal = open();
        ASSERT_EQ(journal->origin(), journal_origin::continued);
        const auto found = journal->take_recovered();
        ASSERT_EQ(journal->dropped(), 0U);
        ASSERT_LE(found.size(), 1U);
        for (const auto& each : found) {
            const std::uint64_t number = each.record.open_number;
            EXPECT_TRUE(each.record == owned_record(number).record) << "round " << round;
            EXPECT_TRUE(number == shared->done.load() or number == shared->begun.load()) << "round " << round;
            ++recovered;
        }
        if (found.empty())
            EXPECT_TRUE(shared->done.load() % 16 <= 1) << "round " << round << ": only after a clear()";
        journal->begin_service();  // and ends the slots
    }
    EXPECT_GT(recovered, 20U);
    ::munmap(shared, sizeof(progress));
}

}  // namespace
}  // namespace sluice::smb::server
