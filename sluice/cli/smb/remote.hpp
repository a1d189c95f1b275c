#pragma once

#include <memory>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/cli/client_settings/host_settings.hpp"
#include "sluice/cli/command_line.hpp"
#include "sluice/cli/serve/loop_threads.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/transfer.hpp"
#include "sluice/smb/client/tree.hpp"
#include "sluice/smb/client/url.hpp"

namespace sluice::cli {

/// The common options of the commands that connect to a server.
struct remote_options {
    std::string password_file;
    bool encrypts = false;
    bool compresses = false;
    bool is_unsigned = false;
    bool is_guest = false;
    std::string dialect_max = "3.1.1";
    unsigned channels = 1;
    unsigned timeout_seconds = static_cast<unsigned>(smb::client::limits::connect_timeout.count());
};
void add_remote_options(command_syntax command, remote_options& options);
/// The text of URL operands in the help.
inline constexpr const char* remote_url_form = "smb://[[DOMAIN;]USER@]HOST[:PORT]/SHARE/PATH";
/// Adds the operand that names a file or directory on a server.
void add_remote_url(command_syntax command, std::string& url);

/// Parses an operand that is a URL. Prints the reason and leaves if it is invalid.
[[nodiscard]] smb::client::smb_url url_operand(
    const std::string& url, smb::client::share_rule share = smb::client::share_rule::required);

/// A connection to a share according to the command line. Prints the reason and leaves on failure.
/// Without a share in the URL, it connects only to the server, and has no tree.
class remote_share {
public:
    remote_share(const std::string& url, const remote_options& options)
        : remote_share(url_operand(url), options) {}
    /// With `next_to`, which outlives it, uses the loop of that, and also its session if the
    /// server and the user are the same.
    remote_share(smb::client::smb_url url, const remote_options& options, remote_share* next_to = nullptr);
    remote_share(const remote_share&) = delete;
    remote_share& operator=(const remote_share&) = delete;
    /// Logs off.
    ~remote_share();

    [[nodiscard]] const smb::client::smb_url& url() const noexcept { return url_; }
    /// Returns the name or address that it has connected to: that of client.toml, or of the URL.
    [[nodiscard]] const std::string& address() const noexcept {
        return settings_.address.empty() ? url_.host : settings_.address;
    }
    /// Returns whether encryption is required.
    [[nodiscard]] bool encrypts(const remote_options& options) const noexcept {
        return options.encrypts or settings_.encrypts;
    }
    [[nodiscard]] smb::client::tree& tree() const noexcept { return *tree_; }
    [[nodiscard]] smb::client::session& session() const noexcept { return *session_; }
    [[nodiscard]] io::io_multiplexer& loop() const noexcept { return *loop_; }
    [[nodiscard]] secret_random_source& random() noexcept { return random_; }
    /// Returns the credentials for a further logon. May prompt for the password.
    [[nodiscard]] smb::auth::credentials credentials(const remote_options& options) const;
    /// Returns whether no channel is left.
    [[nodiscard]] bool is_broken() const noexcept { return session_->first().is_broken(); }

    /// Runs a task to its end. Blocks.
    template <class T>
    T run(io::task<T> what) noexcept {
        return io::sync_wait(*loop_, std::move(what));
    }

    /// Prints "sluice get: smb://host/share/path: why".
    void print_error(const std::string& path, const std::string& why) const;
    /// Prints "sluice get: warning: smb://host/share/path: why".
    void warn(const std::string& path, const std::string& why) const;
    /// Closes the connection, prints the error and leaves.
    [[noreturn]] void fail(const std::string& path, const std::string& why);
    /// The same for a reason on this machine: "sluice put: why".
    [[noreturn]] void fail_here(const std::string& why);

private:
    // Adds to the URL what client.toml says about its host.
    void apply_settings();
    [[nodiscard]] smb::wire::decoded<smb::auth::nt_hash> password_hash(const remote_options& options,
                                                                       const std::string& user) const;
    void log_on(const remote_options& options);
    void connect_to_share();
    void add_channels(unsigned count, std::span<const io::socket_address> known,
                      const smb::client::connection_options& how, const smb::auth::credentials& who);
    void close() noexcept;
    [[noreturn]] void refuse(const std::string& why) const;

    // So that reads and writes allocate nothing. Shares with one loop have one pool, because the
    // tasks of one continue while the other runs.
    std::unique_ptr<io::frame_pool> own_frames_;
    io::frame_pool::use all_tasks_;
    smb::client::smb_url url_;
    host_settings settings_;
    system_clock_source clock_;
    system_random random_;
    std::unique_ptr<io::io_multiplexer> own_loop_;
    io::io_multiplexer* loop_ = nullptr;
    std::vector<std::unique_ptr<smb::client::connection>> connections_;  // the first one created
                                                                         // the session
    std::unique_ptr<smb::client::session> own_session_;
    smb::client::session* session_ = nullptr;
    std::unique_ptr<smb::client::tree> tree_;
};

/// Returns the reason why the name of a host has no address.
[[nodiscard]] std::string resolution_problem(const std::string& host, const error& why);

/// Returns the text of an error of the connection or the logon, with a remedy if one is known.
[[nodiscard]] std::string connection_problem(const smb::client::client_error& why, unsigned timeout_seconds);

/// Joins "a" and "b" to "a/b"; returns "b" if the first is empty.
[[nodiscard]] std::string joined_path(const std::string& directory, const std::string& name);

}  // namespace sluice::cli
