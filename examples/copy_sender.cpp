// Copies a file by senders and receivers: no coroutine frame, no allocation; all
// state is in one object.

#include <array>
#include <cstdio>
#include <optional>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/sender/sender.hpp"

using namespace sluice::io;

namespace {

// Two operations that start each other: a read's done signal starts the write of what it read, a
// write's the next read.
class copier {
public:
    copier(file_handle& from, file_handle& to) noexcept
        : read_(connect(async_read(from, io_request<bytes_type>{block_, 0}), on_read{this})),
          write_(connect(async_write(to, io_request<const_bytes_type>{block_, 0}), on_write{this})) {}
    copier(copier&&) = delete;  // the receivers point here

    void start() noexcept { read_.start(); }
    [[nodiscard]] const std::optional<sluice::error>& failed() const noexcept { return failed_; }

private:
    // The first signal delivers the result; after the second, the operation's state may be reused.
    struct on_read {
        copier* self;
        void set_value(io_result<bytes_type>&& got) noexcept {
            if (got) {
                self->write_.get_sender().request().buffers = *got;
            } else {
                self->failed_ = got.error();
            }
        }
        void set_done() noexcept {
            const bool at_end = self->write_.get_sender().request().buffers.empty();
            if (not self->failed_ and not at_end) self->write_.start();
        }
    };
    struct on_write {
        copier* self;
        void set_value(io_result<const_bytes_type>&& put) noexcept {
            if (not put) self->failed_ = put.error();
            auto& read = self->read_.get_sender().request();
            auto& write = self->write_.get_sender().request();
            read.offset = write.offset += put.bytes_transferred();
        }
        void set_done() noexcept {
            if (not self->failed_) self->read_.start();
        }
    };

    std::array<std::byte, 65536> block_;
    std::optional<sluice::error> failed_;
    io_operation_connection<transfer_sender<bytes_type>, on_read> read_;
    io_operation_connection<transfer_sender<const_bytes_type>, on_write> write_;
};

sluice::result<void> copy(const char* source, const char* destination) {
    auto from = file_handle::open({}, source);
    if (not from) return sluice::failure(from.error());
    auto to = file_handle::open({}, destination, mode::write, creation::always_new);
    if (not to) return sluice::failure(to.error());
    if (auto attached = from->set_multiplexer(); not attached) return attached;
    if (auto attached = to->set_multiplexer(); not attached) return attached;

    copier state(*from, *to);
    state.start();
    while (to->multiplexer()->run().value_or(0) > 0) {}
    if (state.failed()) return sluice::failure(*state.failed());
    if (auto durable = to->barrier(); not durable) return sluice::failure(durable.error());
    return to->close();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SOURCE DESTINATION\n", argv[0]);
        return 2;
    }
    const auto copied = copy(argv[1], argv[2]);
    if (not copied) std::fprintf(stderr, "%s: %s\n", argv[0], copied.error().message().c_str());
    return copied ? 0 : 1;
}
