#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "sluice/base/random.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"

// A directory of the host and the volume in memory get the same random calls and must return the
// same results. The one in memory is simple enough to be verified by reading, so it is the model.

namespace sluice::vfs {
namespace {

// Executes calls on one volume and returns their results as text.
class actor {
public:
    actor(io::io_multiplexer& multiplexer, volume& on) : multiplexer_(multiplexer), volume_(on) {}

    [[nodiscard]] std::string create(const std::string& path, node_kind kind) {
        return std::to_string(code(volume_.create(path, {.kind = kind})));
    }
    [[nodiscard]] std::string find(const std::string& path) {
        const auto found = volume_.find(path, follow_links::yes);
        return found ? (*found)->path() + describe(**found) : std::to_string(code(found));
    }
    [[nodiscard]] std::string remove(const std::string& path) {
        const auto found = volume_.find(path, follow_links::no);
        return std::to_string(found ? code((*found)->names()->remove()) : code(found));
    }
    [[nodiscard]] std::string rename(const std::string& path, const std::string& to, when_taken taken) {
        const auto found = volume_.find(path, follow_links::no);
        if (not found) return std::to_string(code(found));
        const auto done = (*found)->names()->rename(to, taken);
        // If several errors apply, the host may return another one.
        return done ? "moved to " + (*found)->path() : "not moved";
    }
    [[nodiscard]] std::string link(const std::string& path, const std::string& to, when_taken taken) {
        const auto found = volume_.find(path, follow_links::no);
        if (not found) return std::to_string(code(found));
        return (*found)->names()->link(to, taken) ? "linked" : "not linked";
    }
    [[nodiscard]] std::string write(const std::string& path, std::string_view text, std::uint64_t offset) {
        const auto found = volume_.find(path, follow_links::yes);
        if (not found) return std::to_string(code(found));
        const auto opened = open_data(**found, {.read = true, .write = true});
        if (not opened) return std::to_string(code(opened));
        return std::to_string(code(
            io::sync_wait(multiplexer_, (*found)->data()->co_write(std::as_bytes(std::span(text)), offset))));
    }
    [[nodiscard]] std::string truncate(const std::string& path, std::uint64_t size) {
        const auto found = volume_.find(path, follow_links::yes);
        if (not found or not open_data(**found, {.read = true, .write = true})) return "no file";
        return std::to_string(code((*found)->data()->truncate(size)));
    }
    [[nodiscard]] std::string set_stream(const std::string& path, std::string_view name,
                                         std::string_view text) {
        const auto found = volume_.find(path, follow_links::yes);
        if (not found) return "no file";
        const auto stream = open_stream(**found, {.name = name, .create = true});
        if (not stream or not(*stream)->data()->open_data({.read = true, .write = true})) return "no stream";
        if (text.empty()) return std::to_string(code((*stream)->names()->remove()));
        return std::to_string(code(
            io::sync_wait(multiplexer_, (*stream)->data()->co_write(std::as_bytes(std::span(text)), 0))));
    }
    [[nodiscard]] std::string hide(const std::string& path) {
        const auto found = volume_.find(path, follow_links::yes);
        if (not found) return "no file";
        return std::to_string(code((*found)->change({.dos = dos_attributes::hidden})));
    }

    // Returns all files with their contents.
    [[nodiscard]] std::string picture(const std::string& path = {}) {
        const auto directory = volume_.find(path, follow_links::no).value();
        std::vector<std::string> names;
        const auto listing = directory->children()->list().value();
        while (const listed_name* next = listing->next().value())
            names.push_back((path.empty() ? path : path + '/') + std::string(next->name));
        std::ranges::sort(names);
        std::string all;
        for (const std::string& name : names) {
            const auto found = volume_.find(name, follow_links::no).value();
            all += name + describe(*found) + content(*found) + '\n';
            if (found->kind() == node_kind::directory) all += picture(name);
        }
        return all;
    }

private:
    [[nodiscard]] static std::string describe(node& what) {
        const metadata status = what.status().value();
        std::string text =
            status.kind == node_kind::directory ? "/" : " " + std::to_string(status.size_bytes);
        if (status.kind == node_kind::file) text += " links " + std::to_string(status.links);
        text += " dos " + std::to_string(static_cast<int>(status.dos));
        auto streams = what.attached()->streams().value();
        std::ranges::sort(streams, {}, &stream_info::name);
        for (const stream_info& each : streams)
            text += " :" + each.name + " " + std::to_string(each.size_bytes);
        return text;
    }
    [[nodiscard]] std::string content(node& of) {
        if (of.kind() != node_kind::file or not of.data()->open_data({.read = true})) return {};
        std::string text(256, '\0');
        const auto bytes =
            io::sync_wait(multiplexer_, of.data()->co_read(std::as_writable_bytes(std::span(text)), 0));
        text.resize(bytes.value());
        return " \"" + text + '"';
    }

    io::io_multiplexer& multiplexer_;
    volume& volume_;
};

// Generates the same call for both.
class random_calls {
public:
    explicit random_calls(std::uint64_t seed) : random_(seed) {}

    // Generates one call. The result is a function that executes it on an actor, to be called
    // twice.
    [[nodiscard]] std::function<std::string(actor&)> next(std::string& said) {
        const std::string path = draw_path();
        const std::string other = draw_path();
        const auto taken = random_.below(2) == 0 ? when_taken::refuse : when_taken::replace;
        const std::uint64_t number = random_.below(200);
        said = path + ", " + other + ", " + std::to_string(number);
        switch (random_.below(12)) {
            case 0:
            case 1:
                return [=](actor& on) { return "create file " + on.create(path, node_kind::file); };
            case 2:
            case 3:
                return [=](actor& on) { return "create directory " + on.create(path, node_kind::directory); };
            case 4:
            case 5:
                return [=](actor& on) { return "rename " + on.rename(path, other, taken); };
            case 6:
                return [=](actor& on) { return "remove " + on.remove(path); };
            case 7:
                return [=](actor& on) { return "link " + on.link(path, other, taken); };
            case 8:
                return [=](actor& on) { return "write " + on.write(path, "some " + other, number); };
            case 9:
                return [=](actor& on) { return "truncate " + on.truncate(path, number); };
            case 10:
                return [=](actor& on) {
                    return "stream " + on.set_stream(path, other.substr(0, 1), number < 50 ? "" : other);
                };
            default:
                return
                    [=](actor& on) { return "look " + on.find(path) + (number < 20 ? on.hide(path) : ""); };
        }
    }

private:
    [[nodiscard]] std::string draw_path() {
        static constexpr std::array names{"a", "A", "b", "B", "Name", "nAME", "ü", "Ü"};
        std::string path = names[random_.below(names.size())];
        while (random_.below(2) == 0)
            path += std::string("/") + names[random_.below(names.size())];
        return path;
    }

    seeded_random random_;
};

class volume_model : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(seed, volume_model, testing::Range<std::uint64_t>(1, 9));

TEST_P(volume_model, a_directory_of_the_host_behaves_like_the_model) {
    const auto multiplexer = io::make_epoll_multiplexer().value();
    const io::test_directory directory("/dev/shm");
    const auto host = host_volume::open(*multiplexer, directory.path()).value();
    const system_clock_source clock;
    memory_volume model(*multiplexer, clock);
    actor on_host(*multiplexer, *host);
    actor on_model(*multiplexer, model);
    random_calls calls(GetParam());
    int successes = 0;
    for (int i = 0; i < 1500; ++i) {
        std::string said;
        const auto call = calls.next(said);
        const std::string wanted = call(on_model);
        successes += wanted.ends_with(" 0") or wanted.find("moved to") != wanted.npos ? 1 : 0;
        ASSERT_EQ(call(on_host), wanted) << "call " << i << ": " << said;
        if (i % 50 == 49) ASSERT_EQ(on_host.picture(), on_model.picture()) << "call " << i << ": " << said;
    }
    EXPECT_GT(successes, 200) << "too few calls succeeded for a comparison";
}

}  // namespace
}  // namespace sluice::vfs
