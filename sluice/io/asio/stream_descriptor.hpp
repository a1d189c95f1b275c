#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <asio/any_io_executor.hpp>
#include <asio/posix/descriptor_base.hpp>

#include "sluice/io/asio/descriptor_object.hpp"
#include "sluice/io/asio/stream_object.hpp"
#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

namespace sluice::io {

namespace detail {

/// Describes an existing descriptor. Errors: EBADF.
[[nodiscard]] inline result<native_handle> asio_describe(int descriptor) noexcept {
    struct stat found{};
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 or ::fstat(descriptor, &found) != 0) return failure(error::last("assign", descriptor));
    int type = SOCK_STREAM;
    socklen_t length = sizeof type;
    if (S_ISSOCK(found.st_mode)) {
        (void)::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length);
        return describe_socket(descriptor, type == SOCK_STREAM);
    }
    const int access = flags & O_ACCMODE;
    const bool is_file = S_ISREG(found.st_mode) or S_ISBLK(found.st_mode);
    return native_handle{
        .descriptor = descriptor,
        .kind = handle_kind::pipe,
        .readable = access != O_WRONLY,
        .writable = access != O_RDONLY,
        // A file is always ready, and read at its own position, as read(2) does. For other
        // descriptors, each call passes a flag not to wait: the open file description may be
        // shared, and its mode belongs to another program.
        .nonblocking = is_file,
        .stream = S_ISFIFO(found.st_mode) or S_ISCHR(found.st_mode) or is_file,
    };
}

/// As Asio's io_context does: without it, a write to a pipe without a reader would terminate the
/// process.
inline void asio_ignore_sigpipe() noexcept {
    struct sigaction now{};
    if (::sigaction(SIGPIPE, nullptr, &now) == 0 and now.sa_handler == SIG_DFL)
        (void)::signal(SIGPIPE, SIG_IGN);
}

}  // namespace detail

namespace asio_names::posix {

/// Asio's posix::basic_descriptor on our multiplexer: any descriptor that can be waited for. See
/// descriptor_object. The first one ignores SIGPIPE for the process, unless the program has set a
/// disposition.
template <class Executor = asio::any_io_executor>
class basic_descriptor : public descriptor_object<asio::posix::descriptor_base, Executor, pipe_handle> {
    using base = descriptor_object<asio::posix::descriptor_base, Executor, pipe_handle>;

public:
    using typename base::executor_type;
    using typename base::native_handle_type;
    template <class Other>
    struct rebind_executor {
        using other = basic_descriptor<Other>;
    };

    explicit basic_descriptor(const executor_type& executor) : base(executor) {
        detail::asio_ignore_sigpipe();
    }
    template <asio_execution_context Context>
    explicit basic_descriptor(Context& context) : basic_descriptor(executor_type(context.get_executor())) {}
    /// Takes ownership of a descriptor. Throws: asio::system_error, bad_descriptor.
    basic_descriptor(const executor_type& executor, native_handle_type native) : basic_descriptor(executor) {
        assign(native);
    }
    template <asio_execution_context Context>
    basic_descriptor(Context& context, native_handle_type native)
        : basic_descriptor(executor_type(context.get_executor()), native) {}
    basic_descriptor(basic_descriptor&&) noexcept = default;
    basic_descriptor& operator=(basic_descriptor&&) noexcept = default;

    void assign(native_handle_type native, asio::error_code& why) {
        if (this->is_open()) {
            why = asio::error::already_open;
            return;
        }
        const auto described = detail::asio_describe(native);
        why = described.has_value() ? asio::error_code() : detail::asio_error(described.error());
        if (not why) this->adopt(pipe_handle(*described));
    }
    void assign(native_handle_type native) {
        asio::error_code why;
        assign(native, why);
        detail::asio_throw_if(why, "assign");
    }
};

/// Asio's posix::basic_stream_descriptor on our multiplexer: pipes, terminals, devices, and regular
/// files, which are read and written inside the initiating function or the loop, as by Asio.
///
/// The mode of the open file description, which other processes may share, is not changed. A named
/// FIFO or a terminal in blocking mode can therefore wait, rarely, when another process takes the
/// data first.
template <class Executor = asio::any_io_executor>
class basic_stream_descriptor : public stream_object<basic_descriptor<Executor>> {
    using base = stream_object<basic_descriptor<Executor>>;

public:
    using typename base::executor_type;
    template <class Other>
    struct rebind_executor {
        using other = basic_stream_descriptor<Other>;
    };

    using base::base;
    basic_stream_descriptor(basic_stream_descriptor&&) noexcept = default;
    basic_stream_descriptor& operator=(basic_stream_descriptor&&) noexcept = default;
};

using descriptor = basic_descriptor<>;
using stream_descriptor = basic_stream_descriptor<>;

}  // namespace asio_names::posix
}  // namespace sluice::io
