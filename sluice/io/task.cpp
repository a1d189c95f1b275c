#include "sluice/io/task.hpp"

#include <exception>

namespace sluice::io::detail {

void task_promise_base::unhandled_exception() const noexcept {
    try {
        throw;
    } catch (const std::exception& thrown) {
        ensure_failed("no exception leaves a task", thrown.what(), __FILE__, __LINE__);
    } catch (...) {
        ensure_failed("no exception leaves a task", "not a std::exception", __FILE__, __LINE__);
    }
}

}  // namespace sluice::io::detail
