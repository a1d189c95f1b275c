#include "sluice/smb/server/net/server_context.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] wire::guid random_guid(secret_random_source& random) noexcept {
    wire::guid fresh{};
    random.fill(fresh.bytes);
    return fresh;
}

}  // namespace

server_context::server_context(const server_dependencies& given, server_configuration configuration,
                               const dispatcher& functions) noexcept
    : log_(given.log, given.clock),
      identity_(random_guid(given.random)),
      rejections(log_, given.clock),
      quotas(configuration.bounds.shared, rejections),
      admission(configuration.bounds, quotas, rejections),
      logons(given.clock, rejections),
      opens(given.random.next_u64()),
      refusals(log_, given.clock),
      background(given.loop),
      later(given.clock, background),
      // Session IDs begin anywhere, so that one of the server's last run means nothing to this one;
      // but below 2^32, because some clients keep no more of them.
      sessions(given.random.next_u64() >> 33),
      user_names(given.accounts),
      homes(1 + given.other_loops.size()),
      offload_tokens(given.random),
      dependencies_(given),
      configuration_(std::move(configuration)),
      functions_(functions),
      started_at_(given.clock.utc_now()) {
    ENSURE(configuration_.shares.empty(),
           "a configuration that stays would keep shares that a reload removes");
    const std::size_t loop_bytes_max =
        admission.bounds().buffer_bytes / (1 + dependencies_.other_loops.size());
    loops_.push_back(std::make_unique<server_loop>(dependencies_.loop, loop_bytes_max));
    for (io::io_multiplexer* const other : dependencies_.other_loops)
        loops_.push_back(std::make_unique<server_loop>(*other, loop_bytes_max, loops_.size()));
    ENSURE(loops_.back()->number + 1 == loops_.size() and loops_.front()->number == 0,
           "the number of a loop is its index");
    names_.netbios_computer = configuration_.name;
    names_.dns_computer = configuration_.name;
    security_offer_ = auth::negotiator::offer();
}

std::shared_ptr<session> server_context::find_session(std::uint64_t id) const noexcept {
    return sessions.find(id);
}

std::shared_ptr<share> server_context::find_share(std::string_view name) const noexcept {
    const share_list::snapshot all = shares.current();
    const auto found = std::ranges::find_if(*all, [&](const std::shared_ptr<share>& one) {
        return not one->is_withdrawn() and equal_ignoring_case(one->configuration().name, name);
    });
    return found == all->end() ? nullptr : *found;
}

bool server_context::has_referrals() const noexcept {
    const share_list::snapshot all = shares.current();
    return std::ranges::any_of(*all, [](const std::shared_ptr<share>& one) { return one->is_referral(); });
}

}  // namespace sluice::smb::server
