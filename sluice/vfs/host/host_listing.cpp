#include "sluice/vfs/host/host_listing.hpp"

#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

// Enough for the descriptors that Windows writes for most files.
constexpr std::size_t usual_security_bytes = 1024;

class host_listing final : public directory_listing {
public:
    host_listing(host_tree& tree, io::directory_handle directory)
        : tree_(tree), directory_(std::move(directory)) {}

    [[nodiscard]] result<const listed_name*> next() noexcept override;
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override;
    [[nodiscard]] short_name alternate_name() noexcept override;

private:
    [[nodiscard]] result<bool> fetch() noexcept;
    [[nodiscard]] bool describe(const io::directory_entry& entry);
    [[nodiscard]] result<io::handle> open_target(std::string_view name) noexcept;
    void follow(std::string_view name);
    [[nodiscard]] result<std::vector<std::byte>> security_at(const char* name) noexcept;
    [[nodiscard]] std::optional<stored_metadata> stored_of(std::string_view name) noexcept;

    host_tree& tree_;
    io::directory_handle directory_;
    std::array<io::directory_entry, limits::listed_names_per_batch> entries_{};
    std::array<char, limits::listing_storage_bytes> storage_;
    std::span<io::directory_entry> batch_;
    std::uint64_t position_ = 0;
    io::directory_entry entry_{};  // to which current_ refers
    // The volume's table of them, which may be dropped: unfinished listings must not keep many.
    std::weak_ptr<const directory_short_names> short_names_;
    enum class short_names_state : std::uint8_t { not_requested, known, unknown };
    short_names_state short_names_are_ = short_names_state::not_requested;
    std::string shown_;
    listed_name current_;
};

result<const listed_name*> host_listing::next() noexcept {
    for (;;) {
        if (batch_.empty()) {
            const auto more = fetch();
            if (not more) return failure(more.error());
            if (not*more) return nullptr;
        }
        entry_ = batch_.front();
        batch_ = batch_.subspan(1);
        if (describe(entry_)) return &current_;
    }
}

result<bool> host_listing::fetch() noexcept {
    const auto batch = directory_.enumerate(
        {.entries = entries_, .storage = storage_, .position = position_, .wanted = node_fields});
    if (not batch) return failure(batch.error());
    batch_ = batch->entries;
    position_ = batch->next;
    return not batch_.empty();
}

// Returns false for an entry that cannot be listed: even its kind is unknown, or no client sees it.
bool host_listing::describe(const io::directory_entry& entry) {
    if (not entry.status.knows(io::stat_fields::type) or tree_.is_excluded(entry.name)) return false;
    current_.name = shown_name(entry.name, shown_);
    current_.leads_nowhere = false;
    const bool keeps = entry.type == io::file_type::regular or entry.type == io::file_type::directory;
    current_.status =
        metadata_of(entry.status, keeps ? stored_of(entry.name) : std::nullopt, entry.name, tree_.dots());
    if (entry.type == io::file_type::symlink) follow(entry.name);
    tree_.add_implied_attributes(current_.status, entry.name);
    return true;
}

// The names of one listing are from one table, unless it was dropped in between. A later one may be
// that of another state of the directory, like the names themselves.
short_name host_listing::alternate_name() noexcept {
    ENSURE(not entry_.name.empty(), "no name was returned");
    if (not tree_.options.short_names or short_names_are_ == short_names_state::unknown) return {};
    short_name_tables::table_ptr names = short_names_.lock();
    if (names == nullptr) {
        names = short_names_are_ == short_names_state::not_requested ? tree_.short_names_in(directory_)
                                                                     : tree_.last_short_names_in(directory_);
        short_names_are_ = names == nullptr ? short_names_state::unknown : short_names_state::known;
        if (names == nullptr) return {};
        short_names_ = names;
    }
    return names->of(entry_.name);
}

// Links are rare, so an open per link and a query for the path of this directory are acceptable.
result<io::handle> host_listing::open_target(std::string_view name) noexcept {
    const auto here = tree_.present_path(directory_);
    if (not here) return failure({ENOENT, "follow", directory_.descriptor()});
    return tree_.open_exactly(join_path(*here, name), follow_links::yes);
}

void host_listing::follow(std::string_view name) {
    const auto target = open_target(name);
    const auto status = target ? io::status_of(*target, node_fields) : failure(target.error());
    if (not status or tree_.is_excluded(*target, *status)) {
        current_.leads_nowhere = true;
        return;
    }
    const auto stored = tree_.keeps_attributes ? load_metadata(*target) : std::nullopt;
    current_.status = metadata_of(*status, stored.value_or(std::nullopt), name, tree_.dots());
}

// Reads the attributes by name, which saves opening and closing each file. If another process
// replaces the file at the same time, the listing shows the other file's attributes once.
std::optional<stored_metadata> host_listing::stored_of(std::string_view name) noexcept {
    if (not tree_.keeps_attributes) return std::nullopt;
    std::array<std::byte, stored_metadata_storage_bytes> storage;
    // In the storage of enumerate() a zero follows each name.
    const auto value = io::fetch_xattr_at(directory_, name.data(), metadata_attribute, storage);
    if (not value) return std::nullopt;
    return decode_stored_metadata(*value);
}

result<std::vector<std::byte>> host_listing::security() noexcept {
    if (not tree_.keeps_attributes) return failure({EOPNOTSUPP, "get security"});
    ENSURE(not entry_.name.empty(), "no name was returned");
    switch (entry_.type) {
        case io::file_type::regular:
        case io::file_type::directory:
            return security_at(entry_.name.data());
        case io::file_type::symlink: {
            if (current_.leads_nowhere) break;
            const auto target = open_target(entry_.name);
            if (not target) return failure(target.error());
            return load_security(*target);
        }
        default:
            break;
    }
    return std::vector<std::byte>{};
}

// By name, as stored_of().
result<std::vector<std::byte>> host_listing::security_at(const char* name) noexcept {
    std::array<std::byte, usual_security_bytes> usual;
    std::vector<std::byte> longer;
    auto value = io::fetch_xattr_at(directory_, name, security_attribute, usual);
    if (not value and value.error().code() == ERANGE) {
        longer.resize(limits::attribute_bytes_max);
        value = io::fetch_xattr_at(directory_, name, security_attribute, longer);
    }
    if (value) return std::vector<std::byte>(value->begin(), value->end());
    const int code = value.error().code();
    if (code == ENODATA or code == EPERM) return std::vector<std::byte>{};
    return failure(value.error());
}

}  // namespace

result<std::unique_ptr<directory_listing>> list_host_directory(host_tree& tree, const io::handle& directory) {
    const io::descriptor_path itself(directory.descriptor());
    auto opened = io::directory_handle::open({}, itself.c_str());
    if (not opened) return failure(opened.error());
    return std::make_unique<host_listing>(tree, std::move(*opened));
}

}  // namespace sluice::vfs
