// Any bytes as a directory, the fixed root of a small volume. Every listed name is found. After
// additions, removals and changes of case, the index equals one that is loaded from the bytes.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/edit/format.hpp"
#include "sluice/fat/engine/directory.hpp"
#include "sluice/vfs/path.hpp"

namespace {

using namespace sluice;

result<void> no_order() noexcept {
    return {};
}

std::vector<std::string> names_of(const fat::directory& in) {
    std::vector<std::string> names;
    for (const fat::name_entry* each = in.next(0); each != nullptr; each = in.next(each->slot + 1)) {
        ENSURE(vfs::check_name(each->name).has_value());
        ENSURE(in.find(each->name) != nullptr);
        ENSURE(each->first_slot <= each->slot);
        names.emplace_back(each->name.view());
    }
    return names;
}

// Returns whether `now` lacks only names of `before` that differ in case from names in `now`: of
// three equal names of which one was removed, the other two may be one file.
bool lacks_only_spellings(const std::vector<std::string>& now, const std::vector<std::string>& before) {
    auto next = now.begin();
    for (const std::string& name : before) {
        if (next != now.end() and *next == name)
            ++next;
        else if (std::ranges::none_of(now, [&](const auto& each) {
                     return equal_ignoring_case(std::string_view(each), std::string_view(name));
                 }))
            return false;
    }
    return next == now.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fat::format_plan plan = fat::plan_format(160 << 10, {}).value();
    fat::memory_device image(160 << 10);
    const std::size_t room = std::size_t{plan.shape.root_entries} * fat::slot_bytes;
    const auto bytes = std::as_bytes(std::span(data, std::min(size, room)));
    std::ranges::copy(bytes, image.bytes().begin() + static_cast<std::ptrdiff_t>(plan.shape.root_offset));
    const fat::directory::source from{.on = image, .shape = plan.shape};
    const auto loaded = fat::directory::load(from, nullptr).value();
    fat::directory& directory = *loaded;
    for (const std::string& name : names_of(directory)) {
        const fat::name_entry* const found = directory.find(name);
        if (found == nullptr) continue;
        switch (name.size() % 3) {
            case 0:
                directory.remove(found->slot);
                break;
            case 1:
                (void)directory.change_case(found->slot, fold(name));
                break;
            default:
                break;
        }
    }
    for (const char* const name : {"new", "New.txt", "a long name that takes several slots"})
        if (directory.find(name) == nullptr and directory.has_room_for(name))
            ENSURE(directory.add(name, {}).has_value());
    const std::vector<std::string> before = names_of(directory);
    directory.apply_removals();
    ENSURE(directory.write(no_order).has_value());
    const auto again = fat::directory::load(from, nullptr).value();
    const std::vector<std::string> now = names_of(*again);
    ENSURE(lacks_only_spellings(now, before), "the index equals the bytes on the device");
    again->apply_removals();
    ENSURE(again->write(no_order).has_value());
    ENSURE(names_of(*fat::directory::load(from, nullptr).value()) == now, "the index equals the bytes again");
    return 0;
}
