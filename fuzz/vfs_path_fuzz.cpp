// Paths of clients and names of the host. An accepted path names only components below the root on
// the host; a name of the host is never mapped back to another one.

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/path.hpp"
#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

namespace {

using namespace sluice;

// Calls `visit(component)` for each component, also the empty ones.
template <class Visit>
std::size_t for_each_component(std::string_view path, Visit visit) {
    std::size_t count = 1;
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/'), ++count) {
        visit(path.substr(0, slash));
        path.remove_prefix(slash + 1);
    }
    visit(path);
    return count;
}

void check_client_path(std::string_view path) {
    std::string storage;
    const auto mapped = vfs::host_path(path, storage);
    ENSURE(mapped.has_value() == vfs::check_path(path).has_value());
    if (not mapped or path.empty()) return;
    ENSURE(mapped->find('\0') == mapped->npos);
    const std::size_t components = for_each_component(
        *mapped, [](std::string_view name) { ENSURE(not name.empty() and name != "." and name != ".."); });
    ENSURE(components == for_each_component(
                             path, [](std::string_view name) { ENSURE(vfs::check_name(name).has_value()); }));
    ENSURE(fold(fold(path)) == fold(path));
}

// Returns whether a name of the host has characters that represent others, or
// that are not characters.
bool is_ambiguous(std::string_view name) {
    for (std::size_t at = 0; at < name.size();) {
        const name_character next = character_at(name, at);
        if (next.point > 0x10ffff or vfs::host_character(next.point) != next.point) return true;
        at += next.length;
    }
    return false;
}

void check_host_name(std::string_view name) {
    if (name.empty() or name == "." or name == ".." or name.find('\0') != name.npos) return;
    std::string shown_storage;
    std::string host_storage;
    const std::string_view shown = vfs::shown_name(name, shown_storage);
    ENSURE(shown.find('/') == shown.npos and not shown.empty());
    if (not is_ambiguous(name)) ENSURE(vfs::host_name(shown, host_storage) == name);
    // A client may request a shown name if it is text and not too long.
    const auto valid = vfs::check_name(shown);
    if (valid or valid.error().code() == ENAMETOOLONG) return;
    ENSURE(is_ambiguous(name) or not vfs::check_stream_name(shown).has_value() or shown == "." or
           shown == "..");
}

// A name of a snapshot is the only one of its time.
void check_snapshot_name(std::string_view name) {
    for (const char* const text : {"%Y-%m-%d_%H%M%S", "%s", "a%%%d%m%Y"}) {
        const auto pattern = vfs::snapshot_pattern::parse(text);
        ENSURE(pattern.has_value());
        if (const auto when = pattern->time_of(name)) ENSURE(pattern->name_of(*when) == name);
    }
    const auto given = vfs::snapshot_pattern::parse(name);
    if (not given) return;
    const auto made = given->name_of(given->round(vfs::snapshot_time(std::chrono::seconds(1'000'000'000))));
    ENSURE(made and given->time_of(*made).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_client_path(text);
    for_each_component(text, check_host_name);
    for_each_component(text, check_snapshot_name);
    return 0;
}
