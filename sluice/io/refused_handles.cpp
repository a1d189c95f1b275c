#include "sluice/io/refused_handles.hpp"

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io::detail {
namespace {

// Nothing is ever pending on it: begin_slowly() refuses what is started on its only registration.
class refusing_multiplexer final : public io_multiplexer {
public:
    refusing_multiplexer() noexcept {
        for (auto& half : no_handle().halves)
            half.never_speculate = true;
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "none"; }

private:
    result<void> backend_attach(registration&) noexcept override {
        return failure({EOPNOTSUPP, "attach to multiplexer"});
    }
    void backend_detach(registration&) noexcept override {}
    void backend_submit(operation& op) noexcept override {
        op.error_code = EOPNOTSUPP;
        finish(op);
    }
    void backend_cancel(operation&) noexcept override {}
    result<void> backend_complete(time_point) noexcept override { return {}; }
    void backend_wake() noexcept override {}
};

}  // namespace

registration& refused_handle(int code) noexcept {
    thread_local refusing_multiplexer none;
    registration& refused = none.no_handle();
    refused.refuses_with = code;
    return refused;
}

}  // namespace sluice::io::detail
