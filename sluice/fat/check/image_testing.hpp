#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/fat/engine/file_system.hpp"

// For tests: images created and checked by dosfstools.

namespace sluice::fat {

/// Returns an image made by mkfs.fat. `options` as on its command line: "-F 32 -s 1". Stops the
/// test on failure.
[[nodiscard]] std::vector<std::byte> formatted(std::size_t kibibytes, const std::string& options);

/// The output of fsck.fat -n for an image; `is_clean` if it reports no problem.
struct verdict {
    bool is_clean = false;
    std::string said;
};
[[nodiscard]] verdict fsck(std::span<const std::byte> image);

/// Runs a command on an image in a separate file; `%` stands for its name. Returns the output.
[[nodiscard]] std::string run_on(std::span<const std::byte> image, const std::string& command);

/// A mounted volume in memory. Its handles are destroyed before it.
struct mounted_image {
    explicit mounted_image(std::vector<std::byte> bytes,
                           const mount_options& options = {.zone = time_zone::utc()})
        : image(std::move(bytes)) {
        mount(options);
    }
    void mount(const mount_options& options = {.zone = time_zone::utc()}) {
        system.reset();
        shape = read_geometry(image).value();
        system = file_system::mount(image, shape, clock, options).value();
    }

    simulated_clock clock;
    memory_device image;
    geometry shape;
    std::unique_ptr<file_system> system;
};

template <class T>
[[nodiscard]] int code(const result<T>& of) noexcept {
    return of ? 0 : of.error().code();
}

/// Returns bytes that identify their position: those of a file called `seed`, from `offset` on.
[[nodiscard]] std::vector<std::byte> pattern(std::uint64_t seed, std::size_t bytes);

/// Returns the content of a file, read through the engine.
[[nodiscard]] std::string content_of(file_system& of, std::string_view path);
/// Writes a whole file; creates it if necessary.
void put(file_system& into, std::string_view path, std::string_view content);

/// Returns all paths, sizes and contents as text.
[[nodiscard]] std::string picture(file_system& of, const std::string& path = {});

}  // namespace sluice::fat
