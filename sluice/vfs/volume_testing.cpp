#include "sluice/vfs/volume_testing.hpp"

#include <algorithm>

#include "sluice/vfs/host_volume.hpp"
#include "sluice/vfs/memory_volume.hpp"

namespace sluice::vfs {
namespace {

class host_under_test final : public tested_volume {
public:
    host_under_test(io::io_multiplexer& multiplexer, const std::string& parent)
        : folder_(parent), opened_(host_volume::open(multiplexer, folder_.path()).value()) {}
    [[nodiscard]] volume& tested() noexcept override { return *opened_; }

private:
    io::test_directory folder_;
    std::unique_ptr<host_volume> opened_;
};

class memory_under_test final : public tested_volume {
public:
    explicit memory_under_test(io::io_multiplexer& multiplexer) : made_(multiplexer, clock_) {}
    [[nodiscard]] volume& tested() noexcept override { return made_; }

private:
    system_clock_source clock_;
    memory_volume made_;
};

}  // namespace

std::vector<volume_kind> volume_kinds() {
    return {
        {.name = "disk",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<host_under_test>(with, std::filesystem::current_path().string());
         }},
        {.name = "tmpfs",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<host_under_test>(with, "/dev/shm");
         }},
        {.name = "memory",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<memory_under_test>(with);
         }},
    };
}

volume_test::volume_test()
    : multiplexer_(io::best_available().value()), tested_(GetParam().make(*multiplexer_)) {}

node_ptr volume_test::at(std::string_view path, follow_links links) {
    auto found = find(path, links);
    if (not found) ADD_FAILURE() << path << ": " << found.error().message();
    return found ? std::move(*found) : nullptr;
}

node_ptr volume_test::make_file(std::string_view path, std::string_view text) {
    auto made = on().create(path, {});
    if (not made) {
        ADD_FAILURE() << path << ": " << made.error().message();
        return nullptr;
    }
    if (not text.empty()) {
        EXPECT_EQ(code((*made)->open_data(writes)), 0) << path;
        EXPECT_EQ(code(write(**made, text)), 0) << path;
    }
    return std::move(*made);
}

node_ptr volume_test::make_directory(std::string_view path) {
    auto made = on().create(path, {.kind = node_kind::directory});
    if (not made) ADD_FAILURE() << path << ": " << made.error().message();
    return made ? std::move(*made) : nullptr;
}

node_ptr volume_test::make_link(std::string_view path, std::string_view target) {
    auto made = make_file(path);
    const auto done = made->become_link(target);
    EXPECT_EQ(code(done), 0) << path;
    return made;
}

result<void> volume_test::write(node& to, std::string_view text, std::uint64_t offset) {
    return io::sync_wait(*multiplexer_, to.co_write(std::as_bytes(std::span(text)), offset));
}

result<std::string> volume_test::read(node& from, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '\0');
    const auto count =
        io::sync_wait(*multiplexer_, from.co_read(std::as_writable_bytes(std::span(text)), offset));
    if (not count) return failure(count.error());
    text.resize(*count);
    return text;
}

std::string volume_test::content(std::string_view path) {
    const auto found = at(path);
    if (found == nullptr) return "(missing)";
    EXPECT_EQ(code(found->open_data(reads)), 0);
    return read(*found).value_or("(unreadable)");
}

std::map<std::string, metadata> volume_test::list(std::string_view path) {
    std::map<std::string, metadata> listed;
    const auto found = at(path);
    auto listing = found->list();
    EXPECT_EQ(code(listing), 0) << path;
    while (listing) {
        const auto next = (*listing)->next();
        EXPECT_EQ(code(next), 0);
        if (not next or *next == nullptr) break;
        EXPECT_TRUE(listed.emplace((*next)->name, (*next)->status).second) << (*next)->name << " came twice";
    }
    return listed;
}

std::vector<std::string> volume_test::names(std::string_view path) {
    std::vector<std::string> found;
    for (const auto& [name, status] : list(path))
        found.push_back(name);
    return found;
}

}  // namespace sluice::vfs
