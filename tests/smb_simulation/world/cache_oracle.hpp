#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/smb_simulation/world/exchanges.hpp"

namespace sluice::smb_simulation {

/// Checks data, and client caches. Each file whose name begins with 'r' is a register: its content
/// is one value of a few bytes, written as a whole at offset zero, and each value is written once.
///
///   - A READ returns a value that was written, and that was not certainly overwritten before it
///     was sent.
///   - While a client may cache a register, no reply to this client has a changed value, unless the
///     break has reached the client before the reply, on any connection. If a connection may be
///     slow to accept the server's writes (`break_order::relaxed`), the break may also arrive
///     later.
enum class break_order : bool { relaxed, strict };
class cache_oracle final : public oracle {
public:
    explicit cache_oracle(break_order order) noexcept : order_(order) {}

    void on_request(const seen_request& request) override;
    void on_reply(const seen_request& request, const seen_reply& reply) override;
    void on_break(const seen_break& seen) override;
    void on_reach(const seen_request& request, const std::vector<reach>& others) override;
    void on_closed(std::size_t connection, std::uint64_t session) override;
    void finish() override;

    /// Returns how often a value was compared with a cached one.
    [[nodiscard]] std::size_t comparisons() const noexcept { return comparisons_; }
    [[nodiscard]] std::size_t breaks() const noexcept { return breaks_; }
    /// Returns how often a break overtook, on another connection, the reply to the CREATE that
    /// granted the caching. The client then cannot know its caching state, and does not cache here.
    [[nodiscard]] std::size_t early_breaks() const noexcept { return early_breaks_; }

private:
    using value = std::vector<std::byte>;
    using file_name = std::pair<std::uint64_t, std::uint64_t>;
    // The key of a lease, or of an oplock.
    struct cache_key {
        std::size_t client = 0;
        std::optional<smb::wire::lease_key> lease{};
        file_name open{};  // without a lease
        friend auto operator<=>(const cache_key&, const cache_key&) = default;
    };
    struct cache {
        std::uint64_t file_number = 0;
        bool may_read = false;
        std::uint64_t granted_at = 0;  // the last time
        unsigned breaks_unanswered = 0;
        unsigned writes_in_flight = 0;  // with the same key
        std::optional<value> content{};
        std::uint64_t filled_at = 0;
        std::uint64_t changed_at = 0;  // by its own client, with the same key
    };
    struct write_seen {
        value content;
        std::uint64_t sent = 0;
        std::uint64_t answered = 0;  // 0: not answered yet
    };
    // A reply that contradicts a cache whose break may arrive on another connection.
    struct suspicion {
        cache_key key;
        std::size_t connection = 0;
        std::string text{};
        std::vector<reach> others{};
        bool is_cleared = false;
    };
    struct open_register {
        std::uint64_t file_number = 0;
        std::uint64_t session = 0;
        cache_key key;
    };

    [[nodiscard]] const open_register* register_of(const smb::wire::file_id& file) const;
    void end_open(const smb::wire::file_id& file);
    void end_session(std::uint64_t session);
    void take_acknowledgement(const seen_request& request);
    void take_open(const seen_request& request, const seen_reply& reply);
    void take_read(const open_register& by, const seen_request& request, const seen_reply& reply);
    void take_write(const open_register& by, const seen_request& request);
    void compare(const open_register& by, const seen_request& request, const value& content);
    void check_age(std::uint64_t file_number, const seen_request& request, const value& content);

    break_order order_;
    std::map<file_name, open_register> opens_;
    std::map<cache_key, cache> caches_;
    std::map<std::uint64_t, std::vector<write_seen>> writes_;  // by file number
    std::vector<suspicion> suspicions_;
    std::size_t fresh_suspicions_ = 0;  // the number of those at the end of the list that belong to
                                        // the last reply
    std::set<std::pair<cache_key, std::uint64_t>> creating_;  // with a lease key: until the reply
    std::set<cache_key> broken_early_;
    std::size_t early_breaks_ = 0;
    std::size_t comparisons_ = 0;
    std::size_t breaks_ = 0;
};

}  // namespace sluice::smb_simulation
