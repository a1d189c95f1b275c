#include "sluice/io/refused_handles.hpp"

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io::detail {
namespace {

// No thread runs it, so no operation may be pending on it after start() has returned: begin_slowly() refuses
// all operations on its only registration, and the outermost start() also signals those that receivers start.
class refusing_multiplexer final : public io_multiplexer {
public:
    using io_multiplexer::no_handle;

    refusing_multiplexer() noexcept {
        for (auto& half : no_handle().halves)
            half.never_speculate = true;
        no_handle().refusal = &why;
        signal_all_in_start();
        (void)share();  // else, for lack of memory, only this thread may start what is refused
    }

    error why{0, "attach to multiplexer"};

    [[nodiscard]] std::string_view name() const noexcept override { return "none"; }

private:
    result<void> backend_attach(registration&) noexcept override {
        return failure({EOPNOTSUPP, "attach to multiplexer"});
    }
    void backend_detach(registration&) noexcept override {}
    void backend_submit(operation_record& op) noexcept override {
        op.error_code = EOPNOTSUPP;
        finish(op);
    }
    void backend_cancel(operation_record&) noexcept override {}
    result<void> backend_complete(time_point) noexcept override { return {}; }
    void backend_wake() noexcept override {}
};

}  // namespace

registration& refused_handle(const error& why) noexcept {
    thread_local refusing_multiplexer none;
    none.why = why;
    return none.no_handle();
}

}  // namespace sluice::io::detail
