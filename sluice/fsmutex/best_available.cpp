#include "sluice/fsmutex/best_available.hpp"

#include <new>

#include "sluice/base/endian.hpp"
#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/byte_ranges.hpp"
#include "sluice/fsmutex/lock_files.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::fsmutex {
namespace {

result<algorithm_choice> choose_by_content(const io::path_handle& base, io::path_view path) {
    auto file = io::file_handle::open(base, path);
    if (not file) return failure(file.error());
    std::array<std::byte, queue_format::header_bytes> front{};
    const auto got = file->read(io::io_request<io::bytes_type>{front, 0});
    if (not got) return failure(got.error());
    const bytes_view seen(got->data(), got->size());
    if (const auto version = seen.take<le64>(); version and version->value() == mapped::version_1)
        return algorithm_choice{algorithm::memory_map, "the file is a mapped mutex", true};
    const auto version = seen.take_at<le64>(offsetof(queue_format::header_record, version));
    if (version and version->value() == queue_format::version_3)
        return algorithm_choice{algorithm::atomic_append, "the file is a queue", true};
    return failure({ENOENT, "detect the algorithm of a mutex file"});
}

result<algorithm_choice> choose_by_volume(const io::path_handle& base, std::string_view path) {
    const auto slash = path.rfind('/');
    const std::string parent(slash == std::string_view::npos ? "." : path.substr(0, slash + 1));
    const auto directory = io::path_handle::open(base, parent);
    if (not directory) return failure(directory.error());
    const auto volume = io::volume_of(*directory);
    if (not volume) return failure(volume.error());
    const std::string type(volume->type_name);
    if (volume->reach == io::volume_reach::this_host)
        return algorithm_choice{algorithm::memory_map,
                                "no other host can have this " + type + " volume mounted"};
    if (volume->reach == io::volume_reach::other_hosts)
        return algorithm_choice{algorithm::atomic_append,
                                "other hosts can have this " + type + " volume mounted"};
    return algorithm_choice{algorithm::atomic_append,
                            "other hosts may have this volume (" + type + ") mounted"};
}

}  // namespace

result<algorithm_choice> best_available(const io::path_handle& base, io::path_view path) noexcept {
    try {
        if (io::path_handle::open(base, path))
            return algorithm_choice{algorithm::lock_files, "it is a directory", true};
        if (auto found = choose_by_content(base, path)) return found;
        return choose_by_volume(base, path.text());
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "choose an algorithm"});
    }
}

result<std::unique_ptr<shared_fs_mutex>> open(algorithm which, const io::path_handle& base,
                                              io::path_view path, const dependencies& from,
                                              const file_access& access) noexcept {
    switch (which) {
        case algorithm::lock_files:
            return lock_files::open_with_access(base, path, from, access);
        case algorithm::byte_ranges:
            return byte_ranges::open_with_access(base, path, from, access);
        case algorithm::atomic_append:
            return atomic_append::open_with_access(base, path, from, access);
        case algorithm::memory_map:
            return memory_map::open_with_access(base, path, from, access);
    }
    return failure({EINVAL, "open a mutex"});
}

}  // namespace sluice::fsmutex
