#include "sluice/vfs/volume_testing.hpp"

#include "sluice/io/best_available.hpp"

namespace sluice::vfs {
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
        EXPECT_EQ(code((*made)->data()->open_data(writes)), 0) << path;
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
    const auto done = made->attached()->become_link(target);
    EXPECT_EQ(code(done), 0) << path;
    return made;
}

result<void> volume_test::write(node& to, std::string_view text, std::uint64_t offset) {
    return io::sync_wait(*multiplexer_, to.data()->co_write(std::as_bytes(std::span(text)), offset));
}

result<std::string> volume_test::read(node& from, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '\0');
    const auto count =
        io::sync_wait(*multiplexer_, from.data()->co_read(std::as_writable_bytes(std::span(text)), offset));
    if (not count) return failure(count.error());
    text.resize(*count);
    return text;
}

std::string volume_test::content(std::string_view path) {
    const auto found = at(path);
    if (found == nullptr) return "(missing)";
    EXPECT_EQ(code(found->data()->open_data(reads)), 0);
    return read(*found).value_or("(unreadable)");
}

std::map<std::string, metadata> volume_test::list(std::string_view path) {
    std::map<std::string, metadata> listed;
    const auto found = at(path);
    auto listing = found->children()->list();
    EXPECT_EQ(code(listing), 0) << path;
    while (listing) {
        const auto next = (*listing)->next();
        EXPECT_EQ(code(next), 0);
        if (not next or *next == nullptr) break;
        EXPECT_TRUE(listed.emplace((*next)->name, (*next)->status).second)
            << (*next)->name << " was returned twice";
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
