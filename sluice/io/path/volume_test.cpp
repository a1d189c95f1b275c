#include "sluice/io/path/volume_test.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace {

std::string volume_path(const std::string& volume) {
    if (volume == "memory") return "/dev/shm";
    const char* chosen = std::getenv("TMPDIR");
    return chosen != nullptr ? chosen : std::filesystem::current_path().string();
}

std::string make_directory(const std::string& parent) {
    std::string path = parent + "/sluice-io-test-XXXXXX";
    ENSURE(::mkdtemp(path.data()) != nullptr, "the tests need a directory they may write to");
    return path;
}

}  // namespace

test_directory::test_directory(const std::string& parent)
    : path_(make_directory(parent)), anchor_(path_handle::open(path_).value()) {}

test_directory::~test_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

path_handle test_directory::confined(confinement limit) const {
    return path_handle::open(path_, limit).value();
}

void test_directory::write(const std::string& name, const std::string& content) const {
    std::ofstream(path_of(name), std::ios::binary) << content;
}

std::string test_directory::content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_of(name), std::ios::binary).rdbuf();
    return text.str();
}

bool test_directory::exists(const std::string& name) const {
    return std::filesystem::symlink_status(path_of(name)).type() != std::filesystem::file_type::not_found;
}

std::size_t test_directory::entry_count() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_))
        ++count;
    return count;
}

on_each_volume::on_each_volume() : directory(volume_path(GetParam())) {}

}  // namespace sluice::io
