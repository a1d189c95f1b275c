#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"
#include "sluice/vfs/volume_testing.hpp"

namespace sluice::vfs {
namespace {

class host_under_test final : public tested_volume {
public:
    host_under_test(io::io_multiplexer& multiplexer, const std::string& parent,
                    const host_volume_options& options = {})
        : directory_(parent), opened_(host_volume::open(multiplexer, directory_.path(), options).value()) {}
    [[nodiscard]] volume& tested() noexcept override { return *opened_; }

private:
    io::test_directory directory_;
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

std::shared_ptr<fs_domain> offloaded_domain() {
    return std::make_shared<fs_domain>(
        fs_domain_options{.name = "tested", .policy = call_policy::never_inline});
}

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
        {.name = "disk_with_short_names",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<host_under_test>(with, std::filesystem::current_path().string(),
                                                      host_volume_options{.short_names = true});
         }},
        {.name = "offloaded_disk",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             auto made = std::make_unique<host_under_test>(with, std::filesystem::current_path().string());
             made->tested().set_domain(offloaded_domain());
             return made;
         }},
        {.name = "offloaded_memory",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             auto made = std::make_unique<memory_under_test>(with);
             made->tested().set_domain(offloaded_domain());
             return made;
         }},
        {.name = "memory",
         .make = [](io::io_multiplexer& with) -> std::unique_ptr<tested_volume> {
             return std::make_unique<memory_under_test>(with);
         }},
    };
}

}  // namespace sluice::vfs
