#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb_simulation {

/// An operation of a client on one directory, and its result.
struct operation_seen {
    enum class kind : std::uint8_t { create, close, dispose, rename, link, lock, unlock };
    kind what = kind::create;
    std::size_t client = 0;
    std::uint64_t sent = 0;  // times of one clock that advances with each event
    std::uint64_t answered = 0;
    smb::wire::nt_status status{};
    // for create
    smb::wire::create_disposition disposition{};
    smb::wire::access_mask access{};
    smb::wire::share_access share{};
    bool deletes_on_close = false;
    // for create, rename and link
    std::uint8_t name = 0;
    bool replaces = false;  // rename; for dispose, whether to remove the file
    // for all others: the create of the open, as an index of the history
    std::size_t open = 0;
    std::uint8_t range = 0;  // of lock and unlock, which are exclusive and never wait
};
using history = std::vector<operation_seen>;

/// A directory of files as SMB clients see it, one operation at a time: names, share modes, removal
/// at the end of the last open, hard links, exclusive locks of whole ranges.
class directory_model {
public:
    /// Carries out operation `index` of a history. Returns the status that its client must have
    /// received.
    [[nodiscard]] smb::wire::nt_status apply(const history& all, std::size_t index);
    /// Returns the state as text: equal for equal states.
    [[nodiscard]] std::string text() const;

private:
    struct entry {
        std::size_t file = 0;
        std::uint8_t name = 0;
    };
    struct open_file {
        std::size_t file = 0;
        std::size_t entry = 0;
        smb::wire::access_mask access{};
        smb::wire::share_access share{};
        bool deletes_on_close = false;
        std::set<std::uint8_t> locks{};
    };
    struct removal {
        bool is_pending = false;
        std::set<std::size_t> entries{};
    };

    [[nodiscard]] std::optional<std::size_t> entry_of(std::uint8_t name) const;
    [[nodiscard]] smb::wire::nt_status create(const operation_seen& asked, std::size_t index);
    [[nodiscard]] smb::wire::nt_status close(std::size_t open);
    [[nodiscard]] smb::wire::nt_status rename(const operation_seen& asked);
    [[nodiscard]] smb::wire::nt_status link(const operation_seen& asked);
    [[nodiscard]] smb::wire::nt_status lock(const operation_seen& asked);

    std::map<std::size_t, entry> entries_;     // by the operation that created the name
    std::map<std::size_t, open_file> opens_;   // by the operation that created the open
    std::map<std::size_t, removal> removals_;  // by file
};

/// Returns whether there is an order of the operations, each between the times at which it was sent
/// and answered, in which every client would have received the statuses that it received. At most
/// 63 operations. Complexity: exponential in the number of operations that overlap.
[[nodiscard]] bool is_linearizable(const history& all);

/// Formats a history, one operation per line.
[[nodiscard]] std::string to_text(const history& all);

}  // namespace sluice::smb_simulation
