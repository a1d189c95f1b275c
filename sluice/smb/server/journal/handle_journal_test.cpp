#include "sluice/smb/server/journal/handle_journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "sluice/smb/server/journal/crc32c.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_memory.hpp"
#include "sluice/smb/server/journal/journal_testing.hpp"
#include "sluice/smb/server/journal/journal_version.hpp"

namespace sluice::smb::server {
namespace {

namespace format = journal_format;

constexpr std::size_t bytes_with(std::uint32_t slots) {
    return format::header_bytes + std::size_t{slots} * format::slot_bytes;
}

class handle_journal_test : public testing::Test {
protected:
    [[nodiscard]] std::shared_ptr<handle_journal> open(const handle_journal::options& settings = {}) {
        auto opened = handle_journal::open(memory_.storage(), identity_, settings);
        EXPECT_TRUE(opened.has_value());
        return opened.value();
    }

    // Opens the journal after the last process has ended, without any effect on the memory.
    [[nodiscard]] std::shared_ptr<handle_journal> reopen(const std::shared_ptr<handle_journal>& last) {
        last->freeze();
        return open();
    }

    [[nodiscard]] static std::vector<std::uint64_t> numbers_in(handle_journal& journal) {
        std::vector<std::uint64_t> numbers;
        for (const auto& each : journal.take_recovered())
            numbers.push_back(each.record.open_number);
        return numbers;
    }

    // The numbers that a process finds that is started after `last`.
    [[nodiscard]] std::vector<std::uint64_t> numbers_after(const std::shared_ptr<handle_journal>& last) {
        return numbers_in(*reopen(last));
    }

    static constexpr handle_journal::options one_slot{.slots_at_most = 1, .process_id = 0};

    // Writes a copy of the first slot, with the right checksum.
    void write_copy(std::uint64_t generation, std::span<const std::byte> content) {
        const auto copy = memory_.bytes()
                              .slice({.offset = format::header_bytes + generation % 2 * format::copy_bytes,
                                      .length = format::copy_bytes})
                              .value();
        format::copy_header header{.generation = le64(generation),
                                   .length = le32(static_cast<std::uint32_t>(content.size())),
                                   .checksum = {}};
        header.checksum = le32(crc32c(content, crc32c(*bytes_of(header).first(12))));
        byte_writer writer(copy);
        writer.put(header);
        writer.put_bytes(content);
        ASSERT_TRUE(writer.finish().has_value());
    }

    journal_identity identity_{.boot = {std::byte{1}}, .device = 2, .inode = 3, .born = 4};
    journal_memory memory_{bytes_with(256)};
};

using numbers = std::vector<std::uint64_t>;

TEST_F(handle_journal_test, begins_fresh_and_empty) {
    const auto journal = open();
    EXPECT_EQ(journal->origin(), journal_origin::fresh);
    EXPECT_TRUE(journal->take_recovered().empty());
    EXPECT_EQ(journal->slots_in_use(), 0U);
}

TEST_F(handle_journal_test, recovers_the_last_record_of_each_slot) {
    const auto first = open();
    first->begin_service();
    std::vector<handle_journal::slot> slots;
    for (std::uint64_t number = 1; number != 100; ++number) {
        slots.push_back(first->reserve().value());
        for (std::uint64_t each = number; each <= 3000 + number; each += 1000)
            EXPECT_TRUE(slots.back().store(owned_record(each).record));
    }
    EXPECT_EQ(first->slots_in_use(), 99U);
    const auto second = reopen(first);
    EXPECT_EQ(second->origin(), journal_origin::continued);
    EXPECT_EQ(second->slots_in_use(), 99U);
    auto found = second->take_recovered();
    ASSERT_EQ(found.size(), 99U);
    for (std::size_t i = 0; i != found.size(); ++i) {
        EXPECT_TRUE(found[i].record == owned_record(3001 + i).record);
        EXPECT_EQ(found[i].slot.index(), i);
    }
    EXPECT_TRUE(second->take_recovered().empty());
}

TEST_F(handle_journal_test, recovers_nothing_of_a_slot_that_was_cleared_or_ended) {
    const auto journal = open();
    journal->begin_service();
    std::optional<handle_journal::slot> ended = journal->reserve();
    auto cleared = journal->reserve().value();
    auto kept = journal->reserve().value();
    auto never = journal->reserve().value();
    for (handle_journal::slot* each : {&*ended, &cleared, &kept})
        EXPECT_TRUE(each->store(owned_record(each->index() + 1).record));
    EXPECT_FALSE(never.has_record());
    cleared.clear();
    EXPECT_FALSE(cleared.has_record());
    ended.reset();
    EXPECT_EQ(journal->slots_in_use(), 3U);
    EXPECT_EQ(numbers_after(journal), numbers{3});
}

TEST_F(handle_journal_test, uses_a_slot_again_after_its_end) {
    const auto journal = open();
    journal->begin_service();
    for (std::uint64_t number = 1; number != 50; ++number) {
        auto slot = journal->reserve().value();
        EXPECT_EQ(slot.index(), 0U);
        EXPECT_TRUE(slot.store(owned_record(number).record));
    }
    auto last = journal->reserve().value();
    EXPECT_TRUE(last.store(owned_record(77).record));
    EXPECT_EQ(numbers_after(journal), numbers{77});
    EXPECT_EQ(memory_.bytes().size(), bytes_with(format::slots_per_step));
}

TEST_F(handle_journal_test, changes_nothing_after_it_is_frozen) {
    const auto journal = open();
    journal->begin_service();
    std::optional<handle_journal::slot> slot = journal->reserve();
    auto other = journal->reserve().value();
    EXPECT_TRUE(slot->store(owned_record(1).record));
    EXPECT_TRUE(other.store(owned_record(2).record));
    journal->freeze();
    const std::vector<std::byte> before(memory_.bytes().begin(), memory_.bytes().end());
    EXPECT_TRUE(slot->store(owned_record(3).record));
    other.clear();
    slot.reset();
    EXPECT_TRUE(std::ranges::equal(before, memory_.bytes()));
    EXPECT_EQ(numbers_in(*open()), (numbers{1, 2}));
}

TEST_F(handle_journal_test, keeps_the_records_if_the_server_fails_to_start) {
    const auto first = open();
    auto slot = first->reserve().value();
    auto dropped = first->reserve().value();
    EXPECT_TRUE(slot.store(owned_record(5).record));
    EXPECT_TRUE(dropped.store(owned_record(6).record));
    const auto second = reopen(first);
    {
        auto found = second->take_recovered();
        ASSERT_EQ(found.size(), 2U);
        found[1].slot.clear();
    }
    const auto third = reopen(second);
    third->begin_service();
    EXPECT_EQ(numbers_in(*third), numbers{5});
    EXPECT_EQ(numbers_after(third), numbers{});
}

TEST_F(handle_journal_test, does_not_store_a_record_that_is_too_large) {
    const auto journal = open();
    auto slot = journal->reserve().value();
    const owned_record good(8);
    EXPECT_TRUE(slot.store(good.record));
    handle_record bad = good.record;
    const std::string path(handle_record::path_bytes_max + 1, 'p');
    bad.path = path;
    EXPECT_FALSE(slot.store(bad));
    EXPECT_EQ(numbers_after(journal), numbers{8});
}

TEST_F(handle_journal_test, reserves_no_slot_beyond_its_bound_or_in_a_full_file_system) {
    const auto journal = open({.slots_at_most = 70, .process_id = 1});
    std::vector<handle_journal::slot> slots;
    while (auto slot = journal->reserve())
        slots.push_back(*std::move(slot));
    EXPECT_EQ(slots.size(), 70U);
    EXPECT_EQ(memory_.bytes().size(), bytes_with(70));
    slots.pop_back();
    EXPECT_TRUE(journal->reserve().has_value());

    journal->freeze();
    slots.clear();
    memory_.limit(bytes_with(128) - 1);
    const auto next = open();
    while (auto slot = next->reserve())
        slots.push_back(*std::move(slot));
    EXPECT_EQ(slots.size(), 70U);
}

TEST_F(handle_journal_test, moves_a_slot_into_one_that_ends) {
    const auto journal = open();
    journal->begin_service();
    auto a = journal->reserve().value();
    auto b = journal->reserve().value();
    EXPECT_TRUE(a.store(owned_record(1).record));
    EXPECT_TRUE(b.store(owned_record(2).record));
    a = std::move(b);
    EXPECT_EQ(journal->slots_in_use(), 1U);
    EXPECT_EQ(a.index(), 1U);
    EXPECT_EQ(numbers_after(journal), numbers{2});
}

// A store's changes, in any part and order, do not replace the previous record without its last
// word.
TEST_F(handle_journal_test, has_the_old_record_until_the_last_word_of_a_store) {
    seeded_random random(1);
    for (std::uint64_t seed = 2; seed != 40; ++seed) {
        const auto journal = open(one_slot);
        journal->begin_service();
        auto slot = journal->reserve().value();
        for (std::uint64_t each = 1; each != seed; ++each)
            EXPECT_TRUE(slot.store(owned_record(each).record));
        const std::vector<std::byte> before(memory_.bytes().begin(), memory_.bytes().end());
        EXPECT_TRUE(slot.store(owned_record(seed).record));
        journal->freeze();
        const std::vector<std::byte> after(memory_.bytes().begin(), memory_.bytes().end());
        const std::size_t copy = format::header_bytes + seed % 2 * format::copy_bytes;
        for (int round = 0; round != 30; ++round) {
            auto bytes = memory_.bytes();
            std::ranges::copy(before, bytes.begin());
            const std::size_t cut = random.below(format::copy_bytes);
            for (std::size_t i = sizeof(le64); i != format::copy_bytes; ++i)
                if (round % 2 == 0 ? i < cut : random.below(2) == 1) bytes[copy + i] = after[copy + i];
            ASSERT_EQ(numbers_in(*open()), numbers{seed - 1}) << seed;
            memory_.resize(0);
            memory_.resize(before.size());
        }
        std::ranges::copy(after, memory_.bytes().begin());
        EXPECT_EQ(numbers_in(*open()), numbers{seed});
        memory_.resize(0);
    }
}

TEST_F(handle_journal_test, recovers_the_old_or_the_new_record_if_a_copy_is_damaged) {
    const auto journal = open(one_slot);
    journal->begin_service();
    auto slot = journal->reserve().value();
    EXPECT_TRUE(slot.store(owned_record(11).record));
    EXPECT_TRUE(slot.store(owned_record(12).record));
    journal->freeze();
    const std::vector<std::byte> good(memory_.bytes().begin(), memory_.bytes().end());
    std::array<std::size_t, 3> seen{};
    for (std::size_t i = 0; i != format::slot_bytes * 8; i += 3) {
        std::ranges::copy(good, memory_.bytes().begin());
        memory_.bytes()[format::header_bytes + i / 8] ^= std::byte{1} << i % 8;
        const auto after = open();
        after->freeze();
        const auto found = after->take_recovered();
        ASSERT_LE(found.size(), 1U);
        if (found.empty()) {
            ++seen[0];
            continue;
        }
        const std::uint64_t number = found[0].record.open_number;
        ASSERT_TRUE(number == 11 or number == 12);
        ASSERT_TRUE(found[0].record == owned_record(number).record);
        ++seen[number - 10];
    }
    EXPECT_EQ(seen[0], 0U) << "one of two copies is always good";
    EXPECT_GT(seen[1], 0U);
    EXPECT_GT(seen[2], 0U);
}

TEST_F(handle_journal_test, frees_a_slot_whose_record_it_cannot_decode) {
    const auto journal = open();
    auto slot = journal->reserve().value();
    EXPECT_TRUE(slot.store(owned_record(11).record));
    journal->freeze();
    constexpr std::array<std::byte, 1> content{};
    write_copy(13, content);
    const auto next = open();
    EXPECT_EQ(next->slots_in_use(), 1U);
    EXPECT_TRUE(next->take_recovered().empty());
    EXPECT_EQ(next->dropped(), 1U);
    EXPECT_EQ(next->slots_in_use(), 0U);
    EXPECT_EQ(numbers_after(next), numbers{});
}

TEST_F(handle_journal_test, stores_in_a_slot_with_copies_of_impossible_generations) {
    for (const std::uint64_t generation :
         {format::found_generation_max + 1, format::generation_max, ~std::uint64_t{0}}) {
        const auto journal = open(one_slot);
        EXPECT_TRUE(journal->reserve().has_value());
        journal->freeze();
        write_copy(generation, {});
        const auto next = open();
        next->begin_service();
        auto slot = next->reserve().value();
        EXPECT_TRUE(slot.store(owned_record(3).record));
        EXPECT_TRUE(slot.store(owned_record(4).record));
        EXPECT_EQ(numbers_after(next), numbers{4});
        memory_.resize(0);
    }
}

TEST_F(handle_journal_test, is_emptied_if_its_boot_or_root_is_another_one) {
    const auto fill = [this] {
        const auto journal = open();
        journal->begin_service();
        auto slot = journal->reserve().value();
        EXPECT_TRUE(slot.store(owned_record(1).record));
        journal->freeze();
    };
    const auto found = [this] {
        const auto journal = open();
        EXPECT_TRUE(journal->take_recovered().empty());
        EXPECT_EQ(memory_.bytes().size(), format::header_bytes);
        journal->freeze();
        return journal->origin();
    };
    fill();
    identity_.boot[15] = std::byte{9};
    EXPECT_EQ(found(), journal_origin::other_boot);
    fill();
    ++identity_.device;
    EXPECT_EQ(found(), journal_origin::other_root);
    fill();
    ++identity_.inode;
    EXPECT_EQ(found(), journal_origin::other_root);
    fill();
    ++identity_.born;
    EXPECT_EQ(found(), journal_origin::other_root);
}

TEST_F(handle_journal_test, is_refused_and_left_as_it_is_if_it_has_a_later_version) {
    const auto journal = open();
    auto slot = journal->reserve().value();
    EXPECT_TRUE(slot.store(owned_record(1).record));
    journal->freeze();
    auto header = memory_.bytes().take<format::header>().value();
    header.version = le32(format::version + 1);
    header.checksum = le32(crc32c(*bytes_of(header).first(offsetof(format::header, checksum))));
    byte_writer writer(memory_.bytes());
    writer.put(header);
    ASSERT_TRUE(writer.finish());
    const std::vector<std::byte> before(memory_.bytes().begin(), memory_.bytes().end());

    EXPECT_EQ(later_version_in(*memory_.storage()), format::version + 1);
    const auto refused = handle_journal::open(memory_.storage(), identity_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), std::errc::not_supported);
    EXPECT_TRUE(std::ranges::equal(memory_.bytes(), before));
}

TEST_F(handle_journal_test, is_emptied_if_its_header_is_damaged) {
    const auto journal = open();
    auto slot = journal->reserve().value();
    EXPECT_TRUE(slot.store(owned_record(1).record));
    journal->freeze();
    const std::vector<std::byte> good(memory_.bytes().begin(), memory_.bytes().end());
    for (std::size_t i = 0; i != offsetof(format::header, attempts) * 8; ++i) {
        memory_.resize(good.size());
        std::ranges::copy(good, memory_.bytes().begin());
        memory_.bytes()[i / 8] ^= std::byte{1} << i % 8;
        const auto next = open();
        EXPECT_EQ(next->origin(), journal_origin::unknown) << i;
        EXPECT_TRUE(next->take_recovered().empty());
    }
}

TEST_F(handle_journal_test, is_opened_with_every_length) {
    const auto journal = open();
    auto slot = journal->reserve().value();
    EXPECT_TRUE(slot.store(owned_record(1).record));
    journal->freeze();
    const std::vector<std::byte> good(memory_.bytes().begin(), memory_.bytes().end());
    seeded_random random(3);
    for (std::size_t length = 0; length < good.size(); length += 1 + random.below(500)) {
        memory_.resize(0);
        memory_.resize(length);
        std::ranges::copy(std::span(good).first(length), memory_.bytes().begin());
        const auto next = open();
        const bool is_whole = length >= bytes_with(1);
        EXPECT_EQ(numbers_in(*next), is_whole ? numbers{1} : numbers{}) << length;
        EXPECT_TRUE(next->reserve().has_value());
        next->freeze();
    }
}

TEST_F(handle_journal_test, continues_if_a_process_was_killed_while_it_created_or_extended_it) {
    memory_.resize(format::header_bytes);
    EXPECT_EQ(open()->origin(), journal_origin::fresh);
    memory_.resize(bytes_with(3) + 100);
    const auto journal = open();
    EXPECT_EQ(journal->origin(), journal_origin::continued);
    std::vector<handle_journal::slot> slots;
    for (std::uint64_t number = 1; number != 10; ++number) {
        slots.push_back(journal->reserve().value());
        EXPECT_TRUE(slots.back().store(owned_record(number).record));
    }
    EXPECT_EQ(numbers_after(journal).size(), 9U);
}

TEST_F(handle_journal_test, is_set_aside_after_three_processes_have_ended_while_restoring_it) {
    {
        const auto journal = open();
        auto slot = journal->reserve().value();
        EXPECT_TRUE(slot.store(owned_record(1).record));
        journal->freeze();
    }
    for (std::uint32_t attempt = 0; attempt != handle_journal::attempts_max; ++attempt)
        EXPECT_EQ(numbers_in(*open()), numbers{1});
    EXPECT_TRUE(memory_.aside().empty());
    EXPECT_EQ(open()->origin(), journal_origin::set_aside);
    EXPECT_EQ(memory_.aside().size(), bytes_with(format::slots_per_step));
    EXPECT_EQ(open()->origin(), journal_origin::continued);
}

TEST_F(handle_journal_test, is_not_set_aside_by_kills_of_servers_that_serve_or_have_not_begun_to_restore) {
    {
        const auto journal = open();
        auto slot = journal->reserve().value();
        EXPECT_TRUE(slot.store(owned_record(1).record));
        journal->freeze();
    }
    for (std::uint32_t round = 0; round != 2 * handle_journal::attempts_max; ++round) {
        EXPECT_EQ(open()->origin(), journal_origin::continued) << "a start that fails before it restores";
        const auto journal = open();
        EXPECT_EQ(journal->origin(), journal_origin::continued);
        auto found = journal->take_recovered();
        ASSERT_EQ(found.size(), 1U);
        journal->begin_service();
        journal->freeze();
    }
}

TEST_F(handle_journal_test, loses_the_changes_from_a_given_one_on) {
    const auto journal = open();
    journal->begin_service();
    auto first = journal->reserve().value();
    auto second = journal->reserve().value();
    journal->freeze_before(3);
    EXPECT_TRUE(first.store(owned_record(1).record));
    EXPECT_TRUE(second.store(owned_record(2).record));
    EXPECT_FALSE(journal->is_frozen());
    first.clear();
    EXPECT_TRUE(journal->is_frozen());
    EXPECT_EQ(numbers_in(*open()), (numbers{1, 2}));
}

TEST_F(handle_journal_test, reports_that_the_storage_is_full_at_the_start) {
    memory_.limit(format::header_bytes - 1);
    const auto opened = handle_journal::open(memory_.storage(), identity_);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error(), std::errc::no_space_on_device);
}

}  // namespace
}  // namespace sluice::smb::server
