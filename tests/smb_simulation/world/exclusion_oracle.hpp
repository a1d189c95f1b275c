#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/smb_simulation/world/exchanges.hpp"

namespace sluice::smb_simulation {

/// Checks that opens which exist at the same time allow each other, and that exclusive locks do not
/// overlap.
///
/// An open certainly exists from the time at which its client receives the reply until the client
/// does something that may end it. An oracle that knows less than the server detects less, but its
/// findings are errors. Named streams, and opens whose file number was not requested, are ignored.
class exclusion_oracle final : public oracle {
public:
    void on_request(const seen_request& request) override;
    void on_reply(const seen_request& request, const seen_reply& reply) override;
    void on_closed(std::size_t connection, std::uint64_t session) override;

    /// Returns how often a conflict was possible: a test checks that the oracle is effective.
    [[nodiscard]] std::size_t pairs() const noexcept { return pairs_; }
    [[nodiscard]] std::size_t lock_pairs() const noexcept { return lock_pairs_; }

private:
    struct open_file {
        std::uint64_t file_number = 0;
        std::size_t connection = 0;
        std::uint64_t session = 0;
        smb::wire::access_mask access{};
        smb::wire::share_access share{};
        std::vector<smb::wire::lock_element> locks{};
        std::uint64_t last_unlock = 0;  // the time at which one was sent
    };
    using file_name = std::pair<std::uint64_t, std::uint64_t>;

    void end_session(std::uint64_t session);
    void take_open(const seen_request& request, const seen_reply& reply);
    void take_locks(const seen_request& request);
    void check_lock(const open_file& by, const smb::wire::lock_element& wanted);
    [[nodiscard]] static file_name name_of(const smb::wire::file_id& file) noexcept;

    std::map<file_name, open_file> opens_;
    std::set<std::uint64_t> ended_sessions_;
    std::size_t pairs_ = 0;
    std::size_t lock_pairs_ = 0;
};

}  // namespace sluice::smb_simulation
