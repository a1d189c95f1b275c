#pragma once

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/smb/server/journal/handle_record.hpp"

namespace sluice::smb::server {

/// Test support: a record with its texts and locks. The number of the open, a random seed, decides
/// all of it, so that a mixture of two records is noticed.
class owned_record {
public:
    /// Every field is within its bounds; some are at their bounds.
    explicit owned_record(std::uint64_t seed) {
        seeded_random random(seed);
        fill_numbers(random);
        record.open_number = seed;
        for (std::size_t i = 0; i != texts_.size(); ++i)
            texts_[i] = text_of(random, bounds[i]);
        if (texts_[0].empty()) texts_[0] = "p";
        for (const std::size_t never_empty : {3U, 5U})
            if (texts_[never_empty].empty()) texts_[never_empty] = "x";
        locks_.resize(count_of(random, handle_record::locks_max));
        for (recorded_lock& each : locks_) {
            each.offset = random.next_u64();
            each.length = random.below(~each.offset);
            each.is_exclusive = random.below(2) == 1;
        }
        record.path = texts_[0];
        record.other_path = texts_[1];
        record.stream = texts_[2];
        record.owner = texts_[3];
        record.domain = texts_[4];
        record.share = texts_[5];
        record.locks = locks_;
    }
    owned_record(const owned_record&) = delete;
    owned_record& operator=(const owned_record&) = delete;

    handle_record record;

private:
    static constexpr std::array<std::size_t, 6> bounds{
        handle_record::path_bytes_max,    handle_record::path_bytes_max,    handle_record::stream_bytes_max,
        handle_record::account_bytes_max, handle_record::account_bytes_max, handle_record::share_bytes_max};

    // None, all, or some; mostly few.
    static std::size_t count_of(seeded_random& random, std::size_t bound) {
        switch (random.below(8)) {
            case 0:
                return 0;
            case 1:
                return bound;
            case 2:
                return random.below(bound + 1);
            default:
                return random.below(bound / 10 + 1);
        }
    }
    static std::string text_of(seeded_random& random, std::size_t bound) {
        std::string made(count_of(random, bound), '\0');
        for (char& each : made)
            each = static_cast<char>('a' + random.below(26));
        return made;
    }
    template <class Bytes>
    static Bytes bytes_from(seeded_random& random) {
        Bytes made{};
        random.fill(made.bytes);
        return made;
    }

    void fill_numbers(seeded_random& random) {
        const auto bits = [&random] { return static_cast<std::uint32_t>(random.next_u64()); };
        record.create_guid = bytes_from<wire::guid>(random);
        record.client_guid = bytes_from<wire::guid>(random);
        if (random.below(2) == 1) record.app_instance = bytes_from<wire::guid>(random);
        if (record.app_instance and random.below(2) == 1)
            record.app_version = {.high = random.next_u64(), .low = random.next_u64()};
        record.granted_access = static_cast<wire::access_mask>(bits());
        record.share_access = static_cast<wire::share_access>(random.below(8));
        record.options = static_cast<wire::create_options>(bits());
        record.disposition = static_cast<wire::create_disposition>(random.below(6));
        record.action = static_cast<wire::create_action>(random.below(4));
        record.attributes = static_cast<wire::file_attributes>(bits());
        record.timeout = std::chrono::milliseconds(bits());
        record.file = {
            .image = 0, .volume = random.next_u64(), .file = random.next_u64(), .stream = random.next_u64()};
        record.caching.which = static_cast<recorded_caching::kind>(random.below(4));
        if (record.caching.which != recorded_caching::kind::none) {
            record.caching.state = static_cast<wire::lease_state>(random.below(8));
            record.caching.epoch = static_cast<std::uint16_t>(bits());
            record.caching.key = bytes_from<wire::lease_key>(random);
        }
        if (record.caching.which == recorded_caching::kind::lease_v2 and random.below(2) == 1)
            record.caching.parent_key = bytes_from<wire::lease_key>(random);
        record.deletes_on_close = random.below(2) == 1;
        record.is_delete_pending = random.below(2) == 1;
        record.is_closed = random.below(2) == 1;
        record.waits_until = std::chrono::nanoseconds(static_cast<std::int64_t>(random.next_u64() >> 1));
        for (std::uint8_t& each : record.lock_sequences)
            if (random.below(2) == 1) each = static_cast<std::uint8_t>(random.below(16));
    }

    std::array<std::string, 6> texts_;
    std::vector<recorded_lock> locks_;
};

}  // namespace sluice::smb::server
