#include "sluice/smb/wire/security/security_descriptor.hpp"

#include <gtest/gtest.h>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/fscc/fscc_testing.hpp"
#include "sluice/smb/wire/security/access_check.hpp"

namespace sluice::smb::wire {
namespace {

using testing::field_source;
using testing::written;

const sid user = sid_of_unix_user(1000);
const sid other_user = sid_of_unix_user(1001);
const sid group = sid_of_unix_group(100);

sid random_sid(field_source& from) {
    std::vector<std::uint32_t> numbers(from.below(sid::sub_authorities_max + 1));
    for (std::uint32_t& number : numbers)
        number = from.u32();
    return {from.u64() & sid::authority_max, std::span<const std::uint32_t>(numbers)};
}

acl random_acl(field_source& from) {
    acl list{.revision = static_cast<std::uint8_t>(from.yes() ? 2 : 4)};
    for (std::size_t left = from.below(5); left != 0; --left) {
        ace entry{.type = ace_type(from.below(20)), .flags = ace_flags(from.u8())};
        if (entry.understood()) {
            entry.rights = access_mask(from.u32());
            entry.who = random_sid(from);
        }
        entry.rest.assign(from.below(3) * 4, std::byte{7});
        list.entries.push_back(entry);
    }
    return list;
}

std::vector<std::byte> bytes_of_descriptor(const security_descriptor& descriptor) {
    return written([&](byte_writer& writer) { EXPECT_TRUE(encode(writer, descriptor).has_value()); });
}

ace allow(const sid& who, access_mask rights, ace_flags flags = ace_flags::none) {
    return {.type = ace_type::allow, .flags = flags, .rights = rights, .who = who};
}
ace deny(const sid& who, access_mask rights, ace_flags flags = ace_flags::none) {
    return {.type = ace_type::deny, .flags = flags, .rights = rights, .who = who};
}
security_descriptor with_entries(std::vector<ace> entries) {
    return {.control = descriptor_control::self_relative,
            .owner = user,
            .group = group,
            .sacl = std::nullopt,
            .dacl = acl{.entries = std::move(entries)}};
}

TEST(sid, text_and_bytes_round_trip) {
    field_source from(1);
    for (int round = 0; round < 500; ++round) {
        const sid who = random_sid(from);
        EXPECT_EQ(sid_of(text_of(who)), who) << text_of(who);
        const auto bytes = written([&](byte_writer& writer) { encode(writer, who); });
        EXPECT_EQ(bytes.size(), who.encoded_bytes());
        byte_reader reader{bytes_view(bytes)};
        EXPECT_EQ(take_sid(reader), who);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            byte_reader cut(*bytes_view(bytes).first(size));
            EXPECT_EQ(take_sid(cut).error(), decode_error::truncated);
            EXPECT_EQ(cut.position(), 0u);
        }
    }
}

TEST(sid, text_is_the_usual_notation) {
    EXPECT_EQ(text_of(sid_everyone), "S-1-1-0");
    EXPECT_EQ(text_of(sid_administrators), "S-1-5-32-544");
    EXPECT_EQ(text_of(user), "S-1-22-1-1000");
    EXPECT_EQ(text_of(sid(0x123456789ABC, {1})), "S-1-0x123456789abc-1");
    EXPECT_EQ(sid_of("S-1-0x000000000005-18"), sid_local_system);
}

TEST(sid, text_that_is_not_a_sid_is_rejected) {
    for (const std::string_view text :
         {"", "S-1", "S-1-", "S-2-1-0", "S-1-1-", "S-1-1-0x", "S-1-1--0", "S-1-1-4294967296",
          "S-1-281474976710656-1", "S-1-5-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16", "S-1-5 -1"})
        EXPECT_FALSE(sid_of(text).has_value()) << text;
}

TEST(sid, bytes_of_another_revision_or_too_many_numbers_are_rejected) {
    auto bytes = written([](byte_writer& writer) { encode(writer, sid_everyone); });
    bytes[1] = std::byte{16};
    bytes.resize(8 + 16 * 4);
    byte_reader many{bytes_view(bytes)};
    EXPECT_EQ(take_sid(many).error(), decode_error::too_many);
    bytes[0] = std::byte{2};
    byte_reader other{bytes_view(bytes)};
    EXPECT_EQ(take_sid(other).error(), decode_error::bad_value);
}

TEST(security_descriptor, is_unchanged_by_a_round_trip) {
    field_source from(2);
    for (int round = 0; round < 300; ++round) {
        security_descriptor descriptor{.control = descriptor_control::self_relative |
                                                  descriptor_control::dacl_protected};
        if (from.yes()) descriptor.owner = random_sid(from);
        if (from.yes()) descriptor.group = random_sid(from);
        if (from.yes()) descriptor.sacl = random_acl(from);
        if (from.yes()) descriptor.dacl = random_acl(from);
        if (descriptor.sacl) descriptor.control |= descriptor_control::sacl_present;
        if (descriptor.dacl or from.yes()) descriptor.control |= descriptor_control::dacl_present;
        const auto bytes = bytes_of_descriptor(descriptor);
        const auto again = decode_security_descriptor(bytes);
        ASSERT_TRUE(again.has_value()) << name_of(again.error());
        EXPECT_TRUE(*again == descriptor);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            std::vector<std::byte> room(size);
            byte_writer writer{mutable_bytes(room)};
            ASSERT_TRUE(encode(writer, descriptor).has_value());
            EXPECT_TRUE(writer.overflowed());
            EXPECT_FALSE(decode_security_descriptor(*bytes_view(bytes).first(size)).has_value());
        }
    }
}

TEST(security_descriptor, offsets_count_from_its_beginning) {
    const security_descriptor descriptor = descriptor_of({.owner = user, .group = group, .mode = 0755});
    const auto bytes = written([&](byte_writer& writer) {
        writer.put_zeros(12);
        ASSERT_TRUE(encode(writer, descriptor).has_value());
    });
    EXPECT_TRUE(decode_security_descriptor(*bytes_view(bytes).from(12)) == descriptor);
}

TEST(security_descriptor, bytes_that_violate_one_rule_are_rejected_by_it) {
    const auto good = bytes_of_descriptor(descriptor_of({.owner = user, .group = group, .mode = 0755}));
    const auto error_with = [&](std::size_t offset, std::uint8_t value) {
        auto bytes = good;
        bytes[offset] = std::byte{value};
        return decode_security_descriptor(bytes).error();
    };
    EXPECT_EQ(error_with(0, 2), decode_error::bad_value);
    EXPECT_EQ(error_with(3, 0), decode_error::unsupported);
    EXPECT_EQ(error_with(7, 1), decode_error::range_outside_message) << "owner";
    EXPECT_EQ(error_with(11, 1), decode_error::range_outside_message) << "group";
    EXPECT_EQ(error_with(19, 1), decode_error::range_outside_message) << "access list";
    EXPECT_EQ(error_with(4, 19), decode_error::range_outside_message) << "an owner in the header";
    EXPECT_EQ(error_with(16, 8), decode_error::range_outside_message) << "an access list in the header";
    const std::size_t list = 20 + user.encoded_bytes() + group.encoded_bytes();
    ASSERT_EQ(std::size_t(good[16]), list);
    EXPECT_EQ(error_with(list, 3), decode_error::bad_value) << "revision of the list";
    EXPECT_EQ(error_with(list + 2, 7), decode_error::bad_chain) << "a list shorter than its header";
    EXPECT_EQ(error_with(list + 3, 1), decode_error::truncated) << "a list longer than the bytes";
    EXPECT_EQ(error_with(list + 4, 4), decode_error::bad_chain) << "more entries than fit into the bytes";
    EXPECT_EQ(error_with(list + 10, 3), decode_error::bad_chain) << "an entry shorter than its header";
    EXPECT_EQ(error_with(list + 10, 21), decode_error::misaligned);
    EXPECT_EQ(error_with(list + 10, 8), decode_error::truncated) << "an entry too short for its SID";
    EXPECT_EQ(error_with(list + 11, 1), decode_error::bad_chain) << "an entry longer than the list";
}

TEST(security_descriptor, is_written_as_the_owner_the_group_the_dacl_and_the_sacl) {
    security_descriptor descriptor = descriptor_of({.owner = user, .group = group, .mode = 0755});
    descriptor.sacl = acl{.entries = {{.type = ace_type::audit, .who = sid_everyone}}};
    const auto bytes = bytes_of_descriptor(descriptor);
    const auto offset_at = [&](std::size_t field) {
        return bytes_view(bytes).from(field)->take<le32>()->value();
    };
    EXPECT_EQ(offset_at(4), 20u);
    EXPECT_EQ(offset_at(8), offset_at(4) + user.encoded_bytes());
    EXPECT_EQ(offset_at(16), offset_at(8) + group.encoded_bytes());
    EXPECT_EQ(offset_at(12), offset_at(16) + encoded_bytes(*descriptor.dacl));
    EXPECT_EQ(bytes.size(), offset_at(12) + encoded_bytes(*descriptor.sacl));
    EXPECT_EQ(bytes.size(), encoded_bytes(descriptor));
}

TEST(security_descriptor, of_more_than_64_KiB_is_neither_written_nor_accepted) {
    const auto with_lists_of = [](std::size_t bytes) {
        const acl half{.entries = {{.type = ace_type(17), .rest = std::vector<std::byte>(bytes - 12)}}};
        return security_descriptor{.sacl = half, .dacl = half};
    };
    const std::size_t largest = (security_descriptor_bytes_max - 20) / 2 / 4 * 4;
    std::vector<std::byte> room(security_descriptor_bytes_max + 1);
    byte_writer writer{mutable_bytes(room)};
    EXPECT_EQ(encode(writer, with_lists_of(largest + 4)).error(), decode_error::too_long);
    EXPECT_EQ(writer.position(), 0u);
    ASSERT_TRUE(encode(writer, with_lists_of(largest)).has_value());
    EXPECT_TRUE(decode_security_descriptor(*writer.finish()).has_value());
    EXPECT_EQ(decode_security_descriptor(room).error(), decode_error::too_long);
}

TEST(security_descriptor, a_list_too_long_for_its_length_field_is_not_written) {
    acl list;
    list.entries.push_back({.type = ace_type(17), .rest = std::vector<std::byte>(65520)});
    std::vector<std::byte> room(70000);
    byte_writer writer{mutable_bytes(room)};
    EXPECT_TRUE(encode(writer, list).has_value());
    list.entries.back().rest.resize(65521);
    EXPECT_EQ(encode(writer, list).error(), decode_error::too_long);
}

TEST(decode_acl, reserves_no_more_entries_than_the_list_states_or_can_hold) {
    const auto bytes = written([](byte_writer& writer) {
        const acl list{.entries = std::vector<ace>(5, allow(user, access_mask::read_data))};
        EXPECT_TRUE(encode(writer, list).has_value());
    });
    EXPECT_EQ(decode_acl(bytes)->entries.capacity(), 5U);
    std::vector<std::byte> false_count = bytes;
    false_count[4] = false_count[5] = std::byte{0xff};
    EXPECT_EQ(decode_acl(false_count).error(), decode_error::bad_chain);
}

TEST(canonical_order, puts_own_denials_first_and_keeps_the_order_of_inherited_entries) {
    const acl wanted{.entries = {deny(user, access_mask::write_data), allow(user, access_mask::read_data),
                                 allow(group, access_mask::read_data, ace_flags::inherited),
                                 deny(group, access_mask::read_data, ace_flags::inherited)}};
    acl mixed{.entries = {wanted.entries[2], wanted.entries[1], wanted.entries[3], wanted.entries[0]}};
    EXPECT_FALSE(is_canonical(mixed));
    make_canonical(mixed);
    EXPECT_TRUE(mixed == wanted);
    EXPECT_TRUE(is_canonical(mixed));
}

TEST(access_check, the_first_entry_that_names_a_right_decides_it) {
    const std::vector<sid> token = {user, group, sid_everyone};
    const auto denied_first =
        with_entries({deny(group, access_mask::write_data),
                      allow(sid_everyone, access_mask::read_data | access_mask::write_data)});
    EXPECT_TRUE(access_check(denied_first, token, access_mask::read_data).allowed());
    EXPECT_EQ(access_check(denied_first, token, access_mask::read_data | access_mask::write_data).denied,
              access_mask::write_data);
    const auto allowed_first =
        with_entries({allow(user, access_mask::write_data), deny(group, access_mask::write_data)});
    EXPECT_TRUE(access_check(allowed_first, token, access_mask::write_data).allowed());
}

TEST(access_check, entries_for_others_and_for_children_only_do_not_count) {
    const std::vector<sid> token = {other_user, sid_everyone};
    const auto descriptor = with_entries(
        {allow(user, file_all_access), allow(sid_everyone, access_mask::read_data, ace_flags::inherit_only)});
    EXPECT_EQ(access_check(descriptor, token, access_mask::read_data).denied, access_mask::read_data);
    EXPECT_EQ(access_check(descriptor, token, access_mask::maximum_allowed).denied,
              access_mask::maximum_allowed);
}

TEST(access_check, the_owner_reads_and_changes_the_list_unless_owner_rights_forbid_it) {
    const std::vector<sid> owner = {user};
    const access_mask implied = access_mask::read_control | access_mask::write_dac;
    EXPECT_EQ(access_check(with_entries({}), owner, access_mask::maximum_allowed).granted, implied);
    EXPECT_EQ(access_check(with_entries({deny(user, implied)}), owner, implied).denied, access_mask::none);
    EXPECT_EQ(access_check(with_entries({allow(sid_owner_rights, access_mask::read_control)}), owner, implied)
                  .denied,
              access_mask::write_dac);
    EXPECT_FALSE(access_check(with_entries({}), std::vector<sid>{other_user}, implied).allowed());
}

TEST(access_check, entries_with_a_condition_deny_and_do_not_grant) {
    const std::vector<sid> token = {other_user, sid_everyone};
    const auto with_condition = [](ace entry, ace_type type) {
        entry.type = type;
        entry.rest.assign(8, std::byte{0x61});
        return entry;
    };
    const ace read = allow(sid_everyone, access_mask::read_data);
    EXPECT_FALSE(access_check(with_entries({with_condition(read, ace_type::allow_callback)}), token,
                              access_mask::read_data)
                     .allowed());
    EXPECT_FALSE(access_check(with_entries({with_condition(read, ace_type::deny_callback), read}), token,
                              access_mask::read_data)
                     .allowed());
    EXPECT_TRUE(access_check(with_entries({with_condition(read, ace_type::audit_callback), read}), token,
                             access_mask::read_data)
                    .allowed());
}

TEST(access_check, generic_rights_equal_the_rights_they_comprise) {
    const std::vector<sid> token = {other_user};
    const auto descriptor = with_entries({allow(other_user, access_mask::generic_read)});
    const access_decision decision = access_check(descriptor, token, access_mask::generic_read);
    EXPECT_TRUE(decision.allowed());
    EXPECT_EQ(decision.granted, file_generic_read);
    EXPECT_EQ(access_check(descriptor, token, access_mask::generic_all).denied,
              without(file_all_access, file_generic_read));
}

TEST(access_check, maximum_allowed_grants_available_rights_and_denies_unavailable_named_rights) {
    const std::vector<sid> token = {other_user};
    const auto descriptor = with_entries({allow(other_user, file_generic_read)});
    EXPECT_EQ(access_check(descriptor, token, access_mask::maximum_allowed),
              (access_decision{.granted = file_generic_read, .denied = access_mask::none}));
    EXPECT_EQ(access_check(descriptor, token, access_mask::maximum_allowed | access_mask::write_data).denied,
              access_mask::write_data);
}

TEST(access_check, without_a_list_everything_except_the_audit_list_is_allowed) {
    const std::vector<sid> token = {other_user};
    security_descriptor descriptor = with_entries({});
    descriptor.dacl.reset();
    EXPECT_TRUE(access_check(descriptor, token, file_all_access).allowed());
    EXPECT_EQ(access_check(descriptor, token, access_mask::access_system_security).denied,
              access_mask::access_system_security);
    EXPECT_EQ(access_check(with_entries({allow(other_user, access_mask::access_system_security)}), token,
                           access_mask::access_system_security)
                  .denied,
              access_mask::access_system_security);
}

TEST(default_descriptor, grants_owner_group_and_everyone_the_rights_of_the_mode) {
    const auto check = [](std::uint32_t mode, bool directory, const sid& who, access_mask desired) {
        const auto descriptor =
            descriptor_of({.owner = user, .group = group, .mode = mode, .directory = directory});
        EXPECT_TRUE(is_canonical(*descriptor.dacl));
        return access_check(descriptor, std::vector<sid>{who, sid_everyone}, desired).allowed();
    };
    EXPECT_TRUE(check(0600, false, user, file_all_access)) << "programs open their own files with all rights";
    EXPECT_TRUE(check(0700, true, user, file_all_access));
    EXPECT_FALSE(check(0600, true, user, access_mask::traverse));
    EXPECT_TRUE(check(0, false, user, access_mask::write_dac | access_mask::write_attributes));
    EXPECT_FALSE(check(0, false, user, access_mask::read_data));
    EXPECT_TRUE(check(0640, false, group, file_generic_read | access_mask::execute));
    EXPECT_FALSE(check(0640, false, group, access_mask::write_data));
    EXPECT_TRUE(check(0660, false, group, access_mask::write_data | access_mask::delete_object));
    EXPECT_FALSE(check(0660, false, other_user, access_mask::read_attributes));
    EXPECT_TRUE(check(0664, false, other_user, access_mask::read_data));
    EXPECT_TRUE(check(0775, true, group, access_mask::add_file | access_mask::delete_child));
    EXPECT_FALSE(check(0775, true, other_user, access_mask::add_file));
}

}  // namespace
}  // namespace sluice::smb::wire
