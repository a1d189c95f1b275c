#include "sluice/io/simulated/simulation_options.hpp"

#include <cerrno>

namespace sluice::io {

simulation_options simulation_options::adversarial(std::uint64_t seed) {
    using namespace std::chrono_literals;
    return {.seed = seed,
            .short_transfers = 400,
            .spurious_waits = 150,
            .late_cancels = 300,
            .speculation = 100,
            .delay_max = 200us,
            .errors = {}};
}

simulation_options simulation_options::hostile(std::uint64_t seed) {
    simulation_options options = adversarial(seed);
    for (const operation_kind on : {operation_kind::read, operation_kind::write}) {
        options.errors.push_back({.on = on, .of = handle_kind::file, .code = EIO, .chance = 5});
        options.errors.push_back(
            {.on = on, .of = handle_kind::socket, .code = ECONNRESET, .chance = 2, .breaks = true});
        options.errors.push_back({.on = on, .of = {}, .code = ENOMEM, .chance = 2});
    }
    options.errors.push_back(
        {.on = operation_kind::write, .of = handle_kind::file, .code = ENOSPC, .chance = 5});
    options.errors.push_back(
        {.on = operation_kind::barrier, .of = handle_kind::file, .code = EIO, .chance = 20});
    options.errors.push_back({.on = operation_kind::accept, .of = {}, .code = EMFILE, .chance = 20});
    options.errors.push_back({.on = operation_kind::connect, .of = {}, .code = ECONNREFUSED, .chance = 50});
    return options;
}

}  // namespace sluice::io
