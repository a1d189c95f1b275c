#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"

namespace sluice::smb::wire {

/// The part of a list that one reply has: in the order of positions, after the last one of which
/// the client has the entries. Allocates: the entries.
template <class Entry>
class rpc_listing {
public:
    explicit rpc_listing(const rpc_enum& asked) noexcept : asked_(asked), last_(asked.after) {}

    /// Adds the entries of the next position, whose texts have that many bytes together. Returns
    /// false if the part is full: these entries, and those after them, are for the next call.
    bool add(std::uint32_t position, std::vector<Entry> some, std::size_t text_bytes) {
        ENSURE(position != 0, "a list can continue after each position");
        // The fixed part of an entry and the counts of its texts.
        constexpr std::size_t other_bytes = 128;
        // A character is at most twice as long in UTF-16.
        const std::size_t bytes = 2 * text_bytes + some.size() * other_bytes;
        const std::size_t bytes_max = std::min<std::size_t>(asked_.bytes_max, rpc_listed_bytes_max);
        const bool fits = entries_.size() + some.size() <= rpc_listed_max and
                          bytes <= bytes_max - std::min(bytes_, bytes_max);
        // At least one position, or the client would never get further.
        if (not entries_.empty() and not fits) {
            continues_after_ = last_;
            return false;
        }
        bytes_ += bytes;
        last_ = position;
        entries_.insert(entries_.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
        return true;
    }
    bool add(std::uint32_t position, Entry one, std::size_t text_bytes) {
        std::vector<Entry> some;
        some.push_back(std::move(one));
        return add(position, std::move(some), text_bytes);
    }
    /// The call examines nothing after `position`, where the next call continues, unless the part
    /// is full before. Entries up to there that are not in the part are left out by the filters.
    void stops_after(std::uint32_t position) noexcept {
        ENSURE(position != 0, "a list can continue after each position");
        continues_after_ = position;
    }

    /// Writes the level, the entries, the number of them, where the list continues, and the status.
    /// `put` writes the fixed part of an entry, `put_texts` the referents of its pointers.
    template <class Put, class PutTexts>
    void write(ndr_writer& out, Put put, PutTexts put_texts) const {
        const auto count = static_cast<std::uint32_t>(entries_.size());
        out.u32(asked_.level);
        out.u32(asked_.level);
        out.pointer(true);
        out.u32(count);
        out.pointer(count != 0);
        if (count != 0) out.u32(count);
        for (const Entry& one : entries_)
            put(one);
        for (const Entry& one : entries_)
            put_texts(one);
        out.u32(count + (continues_after_ ? 1 : 0));
        out.pointer(asked_.resumes);
        if (asked_.resumes) out.u32(continues_after_.value_or(0));
        out.u32(continues_after_ ? rpc_error_more_data : rpc_no_error);
    }

private:
    const rpc_enum& asked_;
    std::vector<Entry> entries_;
    std::size_t bytes_ = 0;
    std::uint32_t last_;                            // the last position in the part
    std::optional<std::uint32_t> continues_after_;  // null: nothing is left
};

/// Writes the results of a list that the client does not get.
inline void put_no_list(ndr_writer& out, const rpc_enum& asked, std::uint32_t why) {
    out.u32(asked.level);
    out.u32(asked.level);
    out.pointer(false);
    out.u32(0);
    out.pointer(asked.resumes);
    if (asked.resumes) out.u32(0);
    out.u32(why);
}

}  // namespace sluice::smb::wire
