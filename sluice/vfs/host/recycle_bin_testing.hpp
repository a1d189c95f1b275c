#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/node_names.hpp"

namespace sluice::vfs {

/// Tests of a volume with a recycle bin.
class recycle_bin_test : public testing::Test {
protected:
    void open(recycle_rules rules = {}) {
        opened_.reset();
        opened_ = host_volume::open(*multiplexer_, path_of(""), {.recycle = std::move(rules)}).value();
    }
    [[nodiscard]] std::string path_of(const std::string& name) const {
        return scratch_.path_of("share/" + name);
    }
    [[nodiscard]] std::string own(const std::string& name = {}) const {
        return ".recycle/" + std::to_string(::geteuid()) + (name.empty() ? "" : "/" + name);
    }
    void put(const std::string& name, const std::string& content = "content") const {
        scratch_.write("share/" + name, content);
    }
    [[nodiscard]] int recycle(const std::string& path) {
        const result<void> done = opened_->find(path, follow_links::no).value()->names()->recycle();
        return done ? 0 : done.error().code();
    }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ifstream file(path_of(name));
        return {std::istreambuf_iterator<char>(file), {}};
    }
    [[nodiscard]] std::vector<std::string> names(const std::string& path) const {
        std::vector<std::string> found;
        for (const auto& each : std::filesystem::directory_iterator(path_of(path)))
            found.push_back(each.path().filename().string());
        return found;
    }
    void tidy(std::chrono::system_clock::time_point now) {
        for (int parts = 0; opened_->tidy(now); ++parts)
            ASSERT_LT(parts, 10'000) << "a pass has an end";
    }

    io::test_directory scratch_{"/dev/shm"};
    bool made_ = std::filesystem::create_directory(scratch_.path_of("share"));
    std::unique_ptr<io::io_multiplexer> multiplexer_ = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> opened_;
    const std::chrono::system_clock::time_point now_ = std::chrono::system_clock::now();
};

}  // namespace sluice::vfs
