#include "sluice/io/task/task.hpp"

#include "sluice/io/loop/failure_handler.hpp"

namespace sluice::io::detail {

void report_thrown(const std::exception_ptr& thrown) noexcept {
    constexpr auto which = unreturned_failure::exception_left_task;
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& what) {
        report_unreturned(which, what.what());
    } catch (...) {
        report_unreturned(which, "not a std::exception");
    }
}

}  // namespace sluice::io::detail
