#include <gtest/gtest.h>

#include <map>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/random.hpp"
#include "sluice/fat/check/image_testing.hpp"

// Random calls, compared with a model that is simple enough to review and checked by fsck.fat. And
// images with damage.

namespace sluice::fat {
namespace {

// Keyed by case-folded paths; the content of directories is not used.
struct model_inode {
    std::string path;
    bool is_directory = false;
    std::string content;
};

class model {
public:
    explicit model(std::uint64_t seed, const mount_options& options, std::vector<std::byte> image)
        : random_(seed), options_(options), on_(std::move(image), options) {}

    void step() {
        switch (random_.below(10)) {
            case 0:
                return create(false);
            case 1:
                return create(random_.below(2) == 0);
            case 2:
            case 3:
            case 4:
                return write();
            case 5:
                return truncate();
            case 6:
            case 7:
                return rename();
            case 8:
                return remove();
            default:
                if (random_.below(4) == 0) EXPECT_EQ(code(fs().commit()), 0);
                return read();
        }
    }

    [[nodiscard]] std::string wanted() const {
        std::string all;
        for (const auto& [folded, each] : items_)
            all += each.path + (each.is_directory ? "/" : " " + digest(each.content)) + '\n';
        return all;
    }
    [[nodiscard]] std::string found(const std::string& path = {}) {
        std::map<std::string, std::string> lines;
        gather(path, lines);
        std::string all;
        for (const auto& [folded, line] : lines)
            all += line + '\n';
        return all;
    }
    void check_and_remount() {
        ASSERT_EQ(found(), wanted());
        ASSERT_EQ(code(fs().unmount()), 0);
        const verdict said = fsck(on_.image.bytes());
        ASSERT_TRUE(said.is_clean) << said.said;
        on_.mount(options_);
        ASSERT_EQ(found(), wanted());
    }

private:
    file_system& fs() { return *on_.system; }

    static std::string digest(const std::string& content) {
        return std::to_string(content.size()) + ' ' + std::to_string(std::hash<std::string>()(content));
    }

    void gather(const std::string& path, std::map<std::string, std::string>& lines) {
        const auto directory = fs().find(path).value();
        for (std::uint32_t slot = 0;;) {
            const auto next = fs().list(*directory, slot).value();
            if (not next) return;
            slot = next->slot + 1;
            const std::string full = path.empty() ? next->name : path + '/' + next->name;
            if (next->status.is_directory) {
                lines[fold(full)] = full + '/';
                gather(full, lines);
            } else {
                lines[fold(full)] = full + ' ' + digest(content_of(fs(), full));
            }
        }
    }

    [[nodiscard]] std::string draw_name() {
        static constexpr std::array names{"a",
                                          "B",
                                          "README.TXT",
                                          "readme.txt",
                                          "Readme.txt",
                                          "a long name, of several slots",
                                          "A LONG NAME, of several slots",
                                          "ünïcödé 日本語.txt",
                                          "x.tar.gz"};
        std::string name = names[random_.below(names.size())];
        if (random_.below(8) == 0) name = std::string(180 + random_.below(40), 'n') + name;
        return name;
    }
    [[nodiscard]] std::string draw_path() {
        std::string path = draw_name();
        while (random_.below(2) == 0)
            path = draw_existing(true) + '/' + path;
        return path.starts_with('/') ? path.substr(1) : path;
    }
    // Usually returns an existing inode.
    [[nodiscard]] std::string draw_existing(bool is_directory) {
        std::vector<std::string> all;
        for (const auto& [folded, each] : items_)
            if (each.is_directory == is_directory) all.push_back(each.path);
        if (all.empty()) return is_directory ? "" : draw_name();
        return all[random_.below(all.size())];
    }
    [[nodiscard]] bool has_parent(const std::string& path) const {
        const auto slash = path.rfind('/');
        if (slash == path.npos) return true;
        const auto parent = items_.find(fold(path.substr(0, slash)));
        return parent != items_.end() and parent->second.is_directory;
    }
    // Returns the path with the parents in their original case.
    [[nodiscard]] std::string spelled(const std::string& path) const {
        const auto slash = path.rfind('/');
        if (slash == path.npos) return path;
        return items_.at(fold(path.substr(0, slash))).path + path.substr(slash);
    }

    void create(bool is_directory) {
        const std::string path = draw_path();
        const auto made = fs().create(path, is_directory, attributes::none);
        const bool may = path.size() < 4000 and has_parent(path) and not items_.contains(fold(path));
        if (code(made) == ENOSPC) return;
        ASSERT_EQ(made.has_value(), may) << path << ": " << code(made);
        if (may) items_[fold(path)] = {.path = spelled(path), .is_directory = is_directory, .content = {}};
    }

    void write() {
        const std::string path = draw_existing(false);
        const auto found_file = fs().find(path);
        const auto known = items_.find(fold(path));
        ASSERT_EQ(found_file.has_value(), known != items_.end()) << path;
        if (not found_file or known->second.is_directory) return;
        std::string& content = known->second.content;
        const std::uint64_t offset = random_.below(content.size() + (random_.below(4) == 0 ? 5000 : 1));
        std::string part(1 + random_.below(random_.below(3) == 0 ? 9000 : 200), '\0');
        random_.fill(std::as_writable_bytes(std::span(part)));
        const auto done = fs().write(**found_file, hint_, std::as_bytes(std::span(part)), offset);
        if (code(done) == ENOSPC) return;
        ASSERT_EQ(code(done), 0);
        content.resize(std::max<std::size_t>(content.size(), offset + part.size()));
        content.replace(offset, part.size(), part);
    }

    void truncate() {
        const std::string path = draw_existing(false);
        const auto known = items_.find(fold(path));
        if (known == items_.end() or known->second.is_directory) return;
        const auto file = fs().find(path).value();
        const std::uint64_t size =
            random_.below(random_.below(3) == 0 ? 60'000 : known->second.content.size() + 1);
        const auto done = fs().truncate(*file, size);
        if (code(done) == ENOSPC) return;
        ASSERT_EQ(code(done), 0);
        known->second.content.resize(size);
    }

    void read() {
        const std::string path = draw_existing(false);
        const auto known = items_.find(fold(path));
        if (known == items_.end() or known->second.is_directory) return;
        const std::string& content = known->second.content;
        const std::uint64_t offset = random_.below(content.size() + 10);
        std::string part(1 + random_.below(4000), 'x');
        const auto count =
            fs().read(*fs().find(path).value(), hint_, std::as_writable_bytes(std::span(part)), offset);
        ASSERT_EQ(code(count), 0);
        part.resize(*count);
        ASSERT_EQ(part, offset < content.size() ? content.substr(offset, 4000).substr(0, part.size()) : "");
        ASSERT_TRUE(part.size() == *count);
    }

    void rename() {
        const std::string from = draw_existing(random_.below(3) == 0);
        const std::string to = draw_path();
        const auto known = items_.find(fold(from));
        if (known == items_.end() or to.size() >= 4000) return;
        const bool replaces = random_.below(2) == 0;
        const auto file = fs().find(from).value();
        const auto done =
            fs().rename(*file, to, replaces ? file_system::if_taken::replace : file_system::if_taken::refuse);
        if (code(done) == ENOSPC) return;
        const model_inode moved = known->second;
        const auto taken = items_.find(fold(to));
        const bool is_same = taken == known;
        const bool is_into_itself = fold(to).starts_with(fold(from) + '/');
        bool may = has_parent(to) and not is_into_itself;
        if (may and taken != items_.end() and not is_same)
            may = replaces and taken->second.is_directory == moved.is_directory and
                  not has_children(taken->first);
        ASSERT_EQ(done.has_value(), may) << from << " to " << to << ": " << code(done);
        if (not may) return;
        const std::string target = spelled(to);
        if (taken != items_.end() and not is_same) items_.erase(taken);
        move(moved.path, target);
    }
    [[nodiscard]] bool has_children(const std::string& folded) const {
        const auto next = items_.lower_bound(folded + '/');
        return next != items_.end() and next->first.starts_with(folded + '/');
    }
    void move(const std::string& from, const std::string& to) {
        std::map<std::string, model_inode> moved;
        for (auto each = items_.begin(); each != items_.end();) {
            const std::string& path = each->second.path;
            if (path != from and not path.starts_with(from + '/')) {
                ++each;
                continue;
            }
            model_inode one = each->second;
            one.path = to + path.substr(from.size());
            moved[fold(one.path)] = std::move(one);
            each = items_.erase(each);
        }
        items_.merge(moved);
    }

    void remove() {
        const std::string path = draw_existing(random_.below(2) == 0);
        const auto known = items_.find(fold(path));
        if (known == items_.end()) return;
        const auto done = fs().remove(*fs().find(path).value());
        ASSERT_EQ(code(done), has_children(known->first) ? ENOTEMPTY : 0) << path;
        if (done) items_.erase(known);
    }

    seeded_random random_;
    mount_options options_;
    mounted_image on_;
    run_list::hint hint_;
    std::map<std::string, model_inode> items_;
};

struct model_run {
    std::uint64_t seed;
    std::size_t kibibytes;
    const char* format;
    mount_options options;
};

class file_system_model : public testing::TestWithParam<model_run> {};
const mount_options in_utc{.zone = time_zone::utc()};
INSTANTIATE_TEST_SUITE_P(
    run, file_system_model,
    testing::Values(
        model_run{1, 720, "-F 12", in_utc}, model_run{2, 5000, "-F 16 -s 1", in_utc},
        model_run{3, 34000, "-F 32 -s 1", in_utc},
        model_run{4, 720, "-F 12", {.mode = write_mode::sync, .zone = time_zone::utc()}},
        model_run{5, 5000, "-F 16 -s 1", {.mode = write_mode::fast, .zone = time_zone::utc()}},
        model_run{6, 720, "-F 12", {.zone = time_zone::utc(), .strategy = lookup_strategy::naive}},
        model_run{7, 720, "-F 12", {.zone = time_zone::utc(), .strategy = lookup_strategy::cursor}}),
    [](const auto& each) { return "seed" + std::to_string(each.param.seed); });

TEST_P(file_system_model, random_calls_agree_with_the_model_and_with_fsck) {
    const model_run& how = GetParam();
    model pair(how.seed, how.options, formatted(how.kibibytes, how.format));
    const int rounds = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 100 : 5;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 200; ++i) {
            pair.step();
            if (testing::Test::HasFatalFailure()) FAIL() << "round " << round << ", call " << i;
        }
        pair.check_and_remount();
        if (testing::Test::HasFatalFailure()) FAIL() << "round " << round;
    }
}

// Calls all reading and many writing functions on an image with arbitrary content. They must return
// and must not abort; the results do not matter.
void use_all(std::vector<std::byte> bytes, seeded_random& random) {
    memory_device image(std::move(bytes));
    const auto shape = read_geometry(image);
    if (not shape) return;
    const simulated_clock clock;
    auto mounted = file_system::mount(image, *shape, clock, in_utc);
    if (not mounted) return;
    file_system& fs = **mounted;
    std::vector<std::string> todo{""};
    std::vector<std::string> all;
    for (std::size_t i = 0; i < todo.size() and i < 200; ++i) {
        const std::string path = todo[i];
        const auto here = fs.find(path);
        if (not here) continue;
        for (std::uint32_t slot = 0; slot < 65'536;) {
            const auto next = fs.list(**here, slot);
            if (not next or not*next) break;
            slot = (*next)->slot + 1;
            all.push_back(path.empty() ? (*next)->name : path + '/' + (*next)->name);
            if ((*next)->status.is_directory) todo.push_back(all.back());
        }
    }
    std::array<std::byte, 3000> part{};
    run_list::hint hint;
    for (std::size_t i = 0; i < all.size() and i < 300; ++i) {
        const auto file = fs.find(all[i]);
        if (not file) continue;
        (void)fs.read(**file, hint, part, random.below(100'000));
        (void)fs.read(**file, hint, part, random.below(UINT32_MAX));
        switch (random.below(6)) {
            case 0:
                (void)fs.remove(**file);
                break;
            case 1:
                (void)fs.truncate(**file, random.below(200'000));
                break;
            case 2:
                (void)fs.write(**file, hint, part, random.below(200'000));
                break;
            case 3:
                (void)fs.rename(**file, all[random.below(all.size())] + "x", file_system::if_taken::replace);
                break;
            case 4:
                (void)fs.create(all[i] + "/new name", random.below(2) == 0, attributes::none);
                break;
            default:
                (void)fs.commit();
        }
    }
    (void)fs.free_clusters();
    (void)fs.unmount();
}

TEST(damaged_images, damaged_metadata_neither_aborts_nor_stalls_any_call) {
    for (const auto& [kibibytes, format] :
         {std::pair(720, "-F 12"), std::pair(2200, "-F 16 -s 1"), std::pair(34000, "-F 32 -s 1")}) {
        mounted_image made(formatted(static_cast<std::size_t>(kibibytes), format));
        seeded_random random(static_cast<std::uint64_t>(kibibytes));
        for (const char* path : {"d", "d/e", "d/e/f", "g"})
            (void)made.system->create(path, true, attributes::none);
        for (int i = 0; i < 30; ++i) {
            const std::string name = "d/e/a file with a long name " + std::to_string(i);
            put(*made.system, i % 3 == 0 ? name : "g/" + std::to_string(i),
                std::string(random.below(9000), 'x'));
        }
        made.system.reset();
        const auto& bytes = made.image.bytes();
        // The table and the directories are at the start of the volume, so the damage is applied
        // there.
        const std::uint64_t most = made.shape.data_offset + 60'000;
        const int rounds = std::getenv("SLUICE_LONG_TESTS") != nullptr ? 3000 : kibibytes > 10'000 ? 10 : 100;
        for (int i = 0; i < rounds; ++i) {
            std::vector<std::byte> damaged(bytes.begin(), bytes.end());
            for (std::uint64_t hits = 1 + random.below(30); hits != 0; --hits) {
                const std::uint64_t place = random.below(4) == 0 ? random.below(most)
                                            : random.below(2) == 0
                                                ? made.shape.fat_offset + random.below(200)
                                                : made.shape.data_offset - 512 + random.below(20'000);
                // Small numbers make chains that cross or are cyclic.
                damaged[place] = static_cast<std::byte>(random.below(random.below(2) == 0 ? 256 : 24));
            }
            if (random.below(10) == 0) damaged.resize(damaged.size() / 2);
            use_all(std::move(damaged), random);
        }
    }
}

}  // namespace
}  // namespace sluice::fat
