#include "sluice/cli/doctor/remote/resolution.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "sluice/cli/doctor/text_file.hpp"
#include "sluice/io/name/name_resolution.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr std::chrono::milliseconds slow_lookup{1'000};
constexpr const char* check = "name";

// Shared with the thread of the lookup, which may outlive the wait.
struct lookup {
    std::mutex guard;
    std::condition_variable done;
    bool is_done = false;
    resolution found;
};

[[nodiscard]] char folded(char each) noexcept {
    return each >= 'A' and each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
}

[[nodiscard]] bool is_same_name(std::string_view one, std::string_view other) noexcept {
    return std::ranges::equal(one, other, {}, folded, folded);
}

[[nodiscard]] bool is_mdns_name(std::string_view host) noexcept {
    constexpr std::string_view suffix = ".local";
    return host.size() > suffix.size() and is_same_name(host.substr(host.size() - suffix.size()), suffix);
}

// Returns the values after `keyword` in all lines that begin with it.
[[nodiscard]] std::vector<std::string> values_of(std::string_view text, std::string_view keyword) {
    std::vector<std::string> found;
    for (const std::string_view line : lines_of(text)) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.size() < 2 or words.front() != keyword) continue;
        for (std::size_t i = 1; i != words.size() and not words[i].starts_with('#'); ++i)
            found.emplace_back(words[i]);
    }
    return found;
}

// Returns an address without its port, in the form of /etc/hosts.
[[nodiscard]] std::string without_port(std::string_view text) {
    text = text.substr(0, text.rfind(':'));
    if (text.starts_with('[') and text.ends_with(']')) text = text.substr(1, text.size() - 2);
    return std::string(text);
}

[[nodiscard]] std::string resolver_text(const resolver_files& files) {
    return fmt::format("hosts: {}; name servers: {}", fmt::join(values_of(files.nsswitch, "hosts:"), " "),
                       fmt::join(values_of(files.resolv_conf, "nameserver"), " "));
}

[[nodiscard]] finding failed_lookup(const std::string& host, const resolution& seen,
                                    const resolver_files& files) {
    finding result{.level = severity::problem,
                   .check = check,
                   .what = fmt::format("the name '{}' has no address", host),
                   .evidence = resolver_text(files),
                   .remedy = fmt::format("getent ahosts {0}; correct the name, or add a line "
                                         "'ADDRESS {0}' to /etc/hosts",
                                         host)};
    const std::vector<std::string> services = values_of(files.nsswitch, "hosts:");
    const bool has_mdns =
        std::ranges::any_of(services, [](const std::string& each) { return each.starts_with("mdns"); });
    if (seen.is_timed_out or seen.code == EAGAIN) {
        result.what = fmt::format("no name server answered for '{}' within {} ms", host, seen.took.count());
        result.remedy = "resolvectl query " + host + "; check the name servers in /etc/resolv.conf";
    } else if (is_mdns_name(host) and not has_mdns) {
        result.what += ", and this host does not resolve names of mDNS";
        result.remedy = "apt install libnss-mdns";
    } else if (seen.code != ENOENT) {
        result.evidence = fmt::format("{}; {}", std::strerror(seen.code), result.evidence);
    }
    return result;
}

}  // namespace

resolution resolve_within(const std::string& host, std::uint16_t port, std::chrono::milliseconds within) {
    const auto shared = std::make_shared<lookup>();
    const auto began = std::chrono::steady_clock::now();
    std::thread([shared, host, port] {
        const auto found = io::resolve(host, port);
        const std::scoped_lock held(shared->guard);
        if (found)
            shared->found.addresses = *found;
        else
            shared->found.code = found.error().code();
        shared->is_done = true;
        shared->done.notify_one();
    }).detach();
    std::unique_lock held(shared->guard);
    const bool is_done = shared->done.wait_for(held, within, [&shared] { return shared->is_done; });
    resolution result = is_done ? shared->found : resolution{.addresses = {}, .code = ETIMEDOUT};
    result.is_timed_out = not is_done;
    result.took =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
    return result;
}

resolver_files resolver_files::of_this_host() {
    return {.hosts = text_of_file("/etc/hosts"),
            .nsswitch = text_of_file("/etc/nsswitch.conf"),
            .resolv_conf = text_of_file("/etc/resolv.conf")};
}

std::vector<std::string> hosts_entries(std::string_view hosts, std::string_view name) {
    std::vector<std::string> found;
    for (const std::string_view line : lines_of(hosts)) {
        const std::vector<std::string_view> words = words_of(line.substr(0, line.find('#')));
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (not is_same_name(words[i], name)) continue;
            found.emplace_back(words.front());
            break;
        }
    }
    return found;
}

std::vector<finding> judge_resolution(const std::string& host, const resolution& seen,
                                      const resolver_files& files) {
    if (seen.addresses.empty()) return {failed_lookup(host, seen, files)};
    std::vector<finding> found;
    std::vector<std::string> texts;
    std::ranges::transform(seen.addresses, std::back_inserter(texts), &io::socket_address::text);
    const bool is_number = seen.addresses.size() == 1 and io::socket_address::ip(host, 0).has_value();
    const std::vector<std::string> of_file = hosts_entries(files.hosts, host);
    if (not is_number)
        found.push_back({.level = severity::note,
                         .check = check,
                         .what = fmt::format("'{}' resolves to {}", host, fmt::join(texts, ", ")),
                         .evidence = of_file.empty() ? resolver_text(files) : "from /etc/hosts",
                         .remedy = {}});
    if (seen.took >= slow_lookup)
        found.push_back({.level = severity::warning,
                         .check = check,
                         .what = fmt::format("the lookup of '{}' is slow", host),
                         .evidence = fmt::format("{} ms; {}", seen.took.count(), resolver_text(files)),
                         .remedy = fmt::format("add a line '{} {}' to /etc/hosts, or remove name servers "
                                               "that do not answer from /etc/resolv.conf",
                                               without_port(texts.front()), host)});
    return found;
}

}  // namespace sluice::cli::doctor
