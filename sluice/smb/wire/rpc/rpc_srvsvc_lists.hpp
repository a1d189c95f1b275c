#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_srvsvc.hpp"

namespace sluice::smb::wire {

/// The part of a list that one reply has: in the order of IDs, after the last entry that the client
/// has. Allocates: the entries.
template <class Entry>
class rpc_listing {
public:
    explicit rpc_listing(const rpc_enum& asked) noexcept : asked_(asked), last_(asked.after) {}

    /// Adds the next entry, whose texts have that many bytes. Returns false if the part is full:
    /// the entry, and those after it, are for the next call.
    bool add(Entry entry, std::size_t text_bytes) {
        // The fixed part of an entry and the counts of its texts.
        constexpr std::size_t other_bytes = 128;
        // A character is at most twice as long in UTF-16.
        const std::size_t bytes = 2 * text_bytes + other_bytes;
        const std::size_t bytes_max = std::min<std::size_t>(asked_.bytes_max, rpc_listed_bytes_max);
        const bool fits = bytes <= bytes_max - std::min(bytes_, bytes_max);
        // At least one, or the client would never get further.
        has_more_ = entries_.size() == rpc_listed_max or (not entries_.empty() and not fits);
        if (has_more_) return false;
        bytes_ += bytes;
        last_ = entry.id;
        entries_.push_back(std::move(entry));
        return true;
    }
    /// Continues after an entry that the filters of the call leave out.
    void skip(std::uint32_t id) noexcept { last_ = id; }
    void stop_early() noexcept { has_more_ = true; }

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
        out.u32(count + (has_more_ ? 1 : 0));
        out.pointer(asked_.resumes);
        if (asked_.resumes) out.u32(has_more_ ? last_ : 0);
        out.u32(has_more_ ? rpc_error_more_data : rpc_no_error);
    }

private:
    const rpc_enum& asked_;
    std::vector<Entry> entries_;
    std::size_t bytes_ = 0;
    std::uint32_t last_;
    bool has_more_ = false;
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
