#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sluice/vfs/host/stream/stream_record.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"

// Internal to the host volume: for the tools that check and repair a store.

namespace sluice::vfs {

/// The directory of an ID, as it is listed in a store.
struct listed_streams {
    stream_id id{};
    std::optional<stream_record> mark{};          // without it, its creation was interrupted
    std::optional<std::uint32_t> stream_owner{};  // if it has a stream, that of the first one
    io::file_status::time_point modified{};
    bool is_lost = false;
    bool is_being_removed = false;  // by a repair that was interrupted
};

/// `lost/ID` has this suffix while it is being removed, so that no server moves it back.
inline constexpr std::string_view removed_suffix = ".removed";

struct store_listing {
    std::function<void(const listed_streams&)> streams;
    /// An object that the format does not define. `path` is relative to the store.
    std::function<void(const std::string& path)> stray;
    std::function<void(const std::string& path, const error& why)> failed;
};

/// Lists a store. Objects that are created or removed at the same time are listed or not. Blocks:
/// for the file system. Allocates: the names of the groups.
void list_store(const io::path_handle& store, const store_listing& into);

}  // namespace sluice::vfs
