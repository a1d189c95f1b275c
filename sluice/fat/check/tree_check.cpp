#include "sluice/fat/check/tree_check.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/short_name.hpp"

namespace sluice::fat {
namespace {

constexpr chain_map::object root_object = 1;
constexpr std::size_t read_bytes_max = 64 * 1024;

// The names that the first two slots of a directory must have.
constexpr short_name_bytes dot_names[] = {{'.', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
                                          {'.', '.', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '}};

bool is_dot_of(const directory_entry& entry, std::uint32_t slot_number) noexcept {
    return slot_number < std::size(dot_names) and entry.name == dot_names[slot_number];
}

// The second byte of a character may be anything.
bool has_bad_character(std::span<const unsigned char> part, code_page page) noexcept {
    constexpr std::string_view bad = "\"*./:<>?\\|";
    while (not part.empty()) {
        const unsigned char c = part.front();
        if (c < ' ' or c == 0x7f or bad.find(static_cast<char>(c)) != bad.npos) return true;
        part = part.subspan(decode(part, page).length);
    }
    return false;
}

bool is_bad_short_name(short_name_bytes name, code_page page) noexcept {
    if (name[0] == ' ') return true;
    if (name[0] == e5_substitute) name[0] = free_mark;
    const std::span<const unsigned char> bytes(name);
    return has_bad_character(bytes.first(8), page) or has_bad_character(bytes.subspan(8), page);
}

// The keys by which names are compared: the eleven bytes, or the displayed name, with different
// prefixes.
std::string key_of(const short_name_bytes& name) {
    return "b" + std::string(name.begin(), name.end());
}
std::string key_of(const std::string& shown) {
    return "s" + fold(shown);
}

// Returns whether all of a name can be displayed. Bytes that the code page lacks all look alike.
bool is_shown_whole(const std::string& shown) {
    return shown.find("\xef\xbf\xbd") == shown.npos;
}

}  // namespace

tree_check::tree_check(device& image, chain_map& map, check_report& report, const check_options& options)
    : image_(image),
      map_(map),
      report_(report),
      problems_(report, options.problems_max),
      options_(options),
      objects_{{.name = "nobody", .parent = 0}, {.name = "", .parent = 0}},
      room_(read_bytes_max) {}

std::string tree_check::path_of(chain_map::object which) const {
    std::string path;
    while (which != root_object and which != chain_map::nobody) {
        ENSURE(which < objects_.size() and objects_[which].parent < which,
               "a directory has a smaller index than its entries");
        path = "/" + objects_[which].name + path;
        if (path.size() > limits::reported_path_bytes_max) return "..." + path;
        which = objects_[which].parent;
    }
    return path.empty() ? "/" : path;
}

std::uint32_t tree_check::first_of(const directory_entry& entry) const noexcept {
    const bool is_wide = map_.shape().type == fat_type::fat32;
    return first_cluster(entry, is_wide ? cluster_width::four_bytes : cluster_width::two_bytes);
}

problem tree_check::about(const reading& state, const slot& one) const {
    problem of;
    of.path = path_of(state.where.which);
    if (of.path.back() != '/') of.path += '/';
    of.path += one.name;
    of.slot_offset = one.offset;
    of.first_slot = one.first_long_slot;
    return of;
}

void tree_check::run() {
    add_root();
    while (not to_read_.empty()) {
        const directory next = to_read_.front();
        to_read_.pop_front();
        read_directory(next);
    }
    ENSURE(objects_.size() == root_object + 1 + report_.files + report_.directories,
           "each entry is an object");
}

void tree_check::add_root() {
    ENSURE(to_read_.empty() and objects_.size() == root_object + 1, "a tree is checked once");
    const geometry& shape = map_.shape();
    directory root{
        .which = root_object, .first = 0, .parent_first = 0, .length = 0, .is_root = true, .slot_offset = 0};
    if (shape.type == fat_type::fat32) {
        root.first = shape.root_cluster;
        if (not map_.is_in_use(root.first)) {
            problem bad{.kind = problem_kind::root_start_bad};
            bad.value = root.first;
            return problems_.add(std::move(bad));
        }
        const chain_map::outcome found = map_.take(root.first, root_object);
        root.length = found.length;
        problem of;
        of.path = "/";
        report_ending(found, std::move(of));
    }
    to_read_.push_back(root);
}

void tree_check::report_ending(const chain_map::outcome& found, problem about) {
    about.cluster = found.last;
    about.value = found.leads_to;
    switch (found.how) {
        case chain_map::ending::whole:
            return;
        case chain_map::ending::broken:
            about.kind = found.length == 0 ? problem_kind::bad_start : problem_kind::chain_broken;
            break;
        case chain_map::ending::loop:
            about.kind = problem_kind::chain_loop;
            break;
        case chain_map::ending::crossed:
            about.kind = problem_kind::cross_link;
            about.other = path_of(map_.owner(found.leads_to));
            break;
    }
    problems_.add(std::move(about));
}

void tree_check::read_directory(const directory& where) {
    const geometry& shape = map_.shape();
    ENSURE(where.first == 0 or map_.owner(where.first) == where.which, "invariant 2");
    reading state{.where = where, .long_name = {}, .names = {}};
    if (where.first == 0) {
        read_extent(state, {shape.root_offset, std::uint64_t{shape.root_entries} * slot_bytes});
    } else {
        std::uint32_t cluster = where.first;
        for (std::uint32_t i = 0; i != where.length; ++i, cluster = map_.value(cluster))
            if (not read_extent(state, {shape.cluster_offset(cluster), shape.cluster_bytes})) break;
    }
    drop_long_name(state);
    if (not where.is_root) check_dots_present(state);
}

// False once there is nothing more to read.
bool tree_check::read_extent(reading& state, byte_extent extent) {
    ENSURE(extent.length % slot_bytes == 0 and extent.offset % slot_bytes == 0, "whole slots are read");
    while (extent.length != 0) {
        const auto room = std::span(room_).first(std::min<std::uint64_t>(extent.length, room_.size()));
        // Bad sectors, or past the end of a truncated image.
        if (not image_.read_at(extent.offset, room)) {
            problem unreadable{.kind = problem_kind::directory_unreadable};
            unreadable.path = path_of(state.where.which);
            problems_.add(std::move(unreadable));
            return false;
        }
        for (std::size_t at = 0; at != room.size(); at += slot_bytes) {
            if (state.number == limits::directory_slots_max) {
                problem large{.kind = problem_kind::directory_too_large};
                large.path = path_of(state.where.which);
                problems_.add(std::move(large));
                return false;
            }
            inspect(state, *bytes_view(room).take_at<directory_entry>(at), extent.offset + at);
            if (state.has_ended) return false;
            ++state.number;
        }
        extent.offset += room.size();
        extent.length -= room.size();
    }
    return true;
}

void tree_check::drop_long_name(reading& state) {
    if (state.long_slots != 0) {
        ENSURE(state.first_long_slot != 0, "a sequence of pieces has a first slot");
        problem orphan{.kind = problem_kind::orphan_long_name};
        orphan.path = path_of(state.where.which);
        orphan.value = state.long_slots;
        orphan.first_slot = state.first_long_slot;
        problems_.add(std::move(orphan));
    }
    state.long_name.drop();
    state.long_slots = 0;
    state.first_long_slot = 0;
}

void tree_check::inspect(reading& state, const directory_entry& entry, std::uint64_t offset) {
    // In the slots of `.` and `..`, only the name counts: other attributes are damage of that
    // entry.
    const bool is_dot = not state.where.is_root and is_dot_of(entry, state.number);
    const slot_kind kind = is_dot ? slot_kind::dots : kind_of(entry);
    if (kind == slot_kind::long_name) {
        // A first piece after other pieces, or a piece that does not continue them: the earlier
        // pieces are orphans.
        state.long_name.add(entry);
        const bool continues =
            state.long_slots != 0 and state.long_name.slots() > 1 and (entry.name[0] & 0x40) == 0;
        if (not continues and state.long_slots != 0) {
            const long_name_collector begun = state.long_name;
            drop_long_name(state);
            state.long_name = begun;
        }
        if (state.long_slots++ == 0) state.first_long_slot = offset;
        return;
    }
    if (kind == slot_kind::end) {
        state.has_ended = true;
        return;
    }
    if (kind == slot_kind::free) return drop_long_name(state);

    slot one{.entry = entry, .offset = offset, .first_long_slot = 0, .name = {}, .has_long_name = false};
    const auto long_name = kind == slot_kind::file or kind == slot_kind::directory
                               ? state.long_name.name_of(entry.name)
                               : std::nullopt;
    if (long_name) {
        one.name = to_utf8(*long_name);
        one.first_long_slot = state.first_long_slot;
        one.has_long_name = true;
        state.long_slots = 0;
    } else {
        one.name = text_of(entry.name, entry.case_bits.value(), options_.page);
    }
    drop_long_name(state);
    inspect_entry(state, one, kind);
}

void tree_check::inspect_entry(reading& state, const slot& one, slot_kind kind) {
    if (kind == slot_kind::dots) return inspect_dots(state, one);
    if (kind == slot_kind::label) return inspect_label(state, one);
    const problem of = about(state, one);
    inspect_names(state, one, of);
    objects_.push_back({.name = one.name, .parent = state.where.which});
    ENSURE(state.where.which < objects_.size() - 1, "a directory has a smaller index than its entries");
    const auto which = static_cast<chain_map::object>(objects_.size() - 1);
    if (kind == slot_kind::directory) {
        ++report_.directories;
        enter_directory(state, one, of, which);
    } else {
        ++report_.files;
        inspect_chain(one, of, which);
    }
}

void tree_check::inspect_dots(reading& state, const slot& one) {
    problem of = about(state, one);
    if (state.where.is_root or not is_dot_of(one.entry, state.number)) {
        of.kind = problem_kind::dot_misplaced;
        return problems_.add(std::move(of));
    }
    const bool is_dot = state.number == 0;
    of.value = first_of(one.entry);
    of.expected = is_dot ? state.where.first : state.where.parent_first;
    of.kind = problem_kind::dot_wrong;
    if (of.value == of.expected) {
        if (kind_of(one.entry) == slot_kind::dots and one.entry.size_bytes.value() == 0) return;
        of.kind = problem_kind::dot_malformed;
        of.value = one.entry.attribute_bits.value();
    }
    of.other = is_dot ? "." : "..";
    of.path = path_of(state.where.which);
    problems_.add(std::move(of));
}

void tree_check::check_dots_present(const reading& state) {
    // inspect_dots has seen those that are there; here the first two slots are read once more.
    const geometry& shape = map_.shape();
    std::array<std::byte, 2 * slot_bytes> start{};
    const std::uint64_t offset = shape.cluster_offset(state.where.first);
    if (not image_.read_at(offset, std::span<std::byte>(start))) return;
    for (const std::uint32_t number : {0U, 1U}) {
        const auto entry = *bytes_view(start).take_at<directory_entry>(number * slot_bytes);
        if (is_dot_of(entry, number)) continue;
        problem missing{.kind = problem_kind::dot_missing};
        missing.path = path_of(state.where.which);
        missing.other = number == 0 ? "." : "..";
        missing.slot_offset = offset + number * slot_bytes;
        missing.expected = number == 0 ? state.where.first : state.where.parent_first;
        problems_.add(std::move(missing));
    }
}

void tree_check::inspect_label(const reading& state, const slot& one) {
    problem of = about(state, one);
    of.kind = state.where.is_root ? problem_kind::second_label : problem_kind::misplaced_label;
    if (not state.where.is_root or root_label_) return problems_.add(std::move(of));
    root_label_.emplace();
    std::memcpy(root_label_->data(), one.entry.name.data(), root_label_->size());
}

void tree_check::inspect_names(reading& state, const slot& one, const problem& about) {
    problem of = about;
    if (is_bad_short_name(one.entry.name, options_.page)) {
        of.kind = problem_kind::bad_short_name;
        problems_.add(of);
    }
    bool is_new = state.names.insert(key_of(one.entry.name)).second;
    const std::string shown = text_of(one.entry.name, 0, options_.page);
    if (is_shown_whole(shown)) is_new = state.names.insert(key_of(shown)).second and is_new;
    if (one.has_long_name and not equal_ignoring_case(one.name, shown))
        is_new = state.names.insert(key_of(one.name)).second and is_new;
    if (is_new) return;
    of.kind = problem_kind::duplicate_name;
    problems_.add(std::move(of));
}

void tree_check::inspect_chain(const slot& one, const problem& about, chain_map::object which) {
    const std::uint32_t first = first_of(one.entry);
    const std::uint64_t size = one.entry.size_bytes.value();
    const std::uint64_t cluster_bytes = map_.shape().cluster_bytes;
    const std::uint64_t needed = (size + cluster_bytes - 1) / cluster_bytes;
    chain_map::outcome found;
    if (first != 0) {
        found = map_.take(first, which, needed);
        report_ending(found, about);
    }
    ENSURE((found.length == 0) == (found.last == 0), "a chain has a last cluster, if it has any");
    problem of = about;
    of.value = found.length;
    of.expected = needed;
    if (found.how == chain_map::ending::whole and found.length < needed) {
        of.cluster = found.last;
        of.kind = problem_kind::chain_too_short;
        problems_.add(std::move(of));
    } else if (found.length > needed) {
        of.cluster = found.at_length;
        of.kind = problem_kind::chain_too_long;
        problems_.add(std::move(of));
    }
}

void tree_check::enter_directory(const reading& state, const slot& one, const problem& about,
                                 chain_map::object which) {
    problem of = about;
    of.value = one.entry.size_bytes.value();
    if (of.value != 0) {
        of.kind = problem_kind::directory_has_size;
        problems_.add(of);
    }
    const std::uint32_t first = first_of(one.entry);
    const chain_map::outcome found = map_.take(first, which);
    report_ending(found, about);
    if (found.length == 0) return;  // invariant 2
    ENSURE(map_.owner(first) == which, "invariant 2");
    const std::uint32_t parent_first = state.where.is_root ? 0 : state.where.first;
    to_read_.push_back({.which = which,
                        .first = first,
                        .parent_first = parent_first,
                        .length = found.length,
                        .is_root = false,
                        .slot_offset = one.offset});
}

}  // namespace sluice::fat
