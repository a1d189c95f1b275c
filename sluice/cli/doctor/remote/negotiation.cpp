#include "sluice/cli/doctor/remote/negotiation.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sluice::cli::doctor {

using smb::client::negotiate_facts;
using smb::client::probed_protocol;
using smb::wire::capabilities;
using smb::wire::dialect;
using smb::wire::security_mode;

namespace {

constexpr const char* smb1_remedy =
    "enable SMB 2 on the server; Samba: 'server min protocol = SMB2_10' and 'server max protocol = SMB3' in "
    "smb.conf; Windows: Set-SmbServerConfiguration -EnableSMB2Protocol $true";
constexpr const char* without_smb1_remedy =
    "disable SMB1 on the server; Samba: 'server min protocol = SMB2_10' in smb.conf; Windows: "
    "Set-SmbServerConfiguration -EnableSMB1Protocol $false";
constexpr const char* access_remedy =
    "read the log of the server; it may limit clients ('hosts allow' of Samba, limits of 'sluice serve "
    "--limits')";

[[nodiscard]] finding problem(std::string check, std::string what, std::string evidence, std::string remedy) {
    return {.level = severity::problem,
            .check = std::move(check),
            .what = std::move(what),
            .evidence = std::move(evidence),
            .remedy = std::move(remedy)};
}

[[nodiscard]] finding warning(std::string check, std::string what, std::string evidence, std::string remedy) {
    finding made = problem(std::move(check), std::move(what), std::move(evidence), std::move(remedy));
    made.level = severity::warning;
    return made;
}

[[nodiscard]] finding note(std::string check, std::string what, std::string evidence) {
    return {.level = severity::note,
            .check = std::move(check),
            .what = std::move(what),
            .evidence = std::move(evidence),
            .remedy = {}};
}

template <class Code, class Name>
[[nodiscard]] std::string names_of(const std::vector<Code>& codes, const Name& name) {
    std::vector<std::string> names;
    for (const Code each : codes)
        names.push_back(name(each));
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

[[nodiscard]] const char* other_protocol(probed_protocol which) noexcept {
    switch (which) {
        case probed_protocol::http:
            return "HTTP";
        case probed_protocol::tls:
            return "TLS";
        case probed_protocol::ssh:
            return "SSH";
        case probed_protocol::netbios_error:
            return "NetBIOS session service";
        default:
            return nullptr;
    }
}

// A server that did not send a complete answer.
[[nodiscard]] finding judge_no_answer(std::uint16_t port, const negotiation& seen) {
    const probe_outcome& first = seen.first;
    const std::string evidence =
        fmt::format("{} bytes received in {} ms{}{}", first.received_bytes, first.took.count(),
                    first.code == 0 ? "" : "; ", first.code == 0 ? "" : std::strerror(first.code));
    if (first.how == reaction::silent)
        return problem(
            "protocol",
            fmt::format("the server on port {} accepts connections, but does not answer "
                        "an SMB request",
                        port),
            evidence,
            fmt::format("on the server: ss -tlnp 'sport = :{}' names the program; restart it if it "
                        "hangs; also test without the firewalls that inspect SMB",
                        port));
    if (first.how == reaction::unreachable)
        return problem("protocol", "the server accepted one connection and refuses the next", evidence,
                       access_remedy);
    return problem("protocol", "the server closes the connection without an answer to an SMB request",
                   evidence, access_remedy);
}

[[nodiscard]] finding judge_clock(std::int64_t skew_s) {
    const std::string evidence = fmt::format("the server's clock is {} s {} the clock of this host",
                                             std::abs(skew_s), skew_s < 0 ? "behind" : "ahead of");
    constexpr std::int64_t kerberos_s = 300;  // RFC 4120, the usual limit
    constexpr std::int64_t noticeable_s = 30;
    const char* const remedy = "on both hosts: timedatectl set-ntp true; timedatectl timesync-status";
    if (std::abs(skew_s) > kerberos_s)
        return problem("clock", "the clocks differ by more than 5 minutes, so Kerberos rejects logons",
                       evidence, remedy);
    if (std::abs(skew_s) > noticeable_s)
        return warning("clock", "the clocks differ; Kerberos rejects logons from 5 minutes on", evidence,
                       remedy);
    return note("clock", "the clocks agree well enough for Kerberos", evidence);
}

[[nodiscard]] finding judge_signing(const negotiation& seen) {
    const negotiate_facts& reply = seen.first.answer.reply;
    const std::string evidence =
        reply.dialect == dialect::smb_3_1_1
            ? "algorithms: " + names_of(seen.signings, name_of_signing)
            : fmt::format("algorithm of dialect {}: {}", name_of_dialect(reply.dialect),
                          reply.dialect >= dialect::smb_3_0 ? "AES-128-CMAC" : "HMAC-SHA256");
    if (smb::wire::has(reply.security_mode, security_mode::signing_required))
        return note("signing", "the server requires signed messages", evidence);
    if (smb::wire::has(reply.security_mode, security_mode::signing_enabled))
        return warning("signing",
                       "the server does not require signed messages, so an attacker on the network can "
                       "change them",
                       evidence,
                       "require signing; sluice: omit --no-signing; Samba: 'server signing = mandatory'; "
                       "Windows: Set-SmbServerConfiguration -RequireSecuritySignature $true");
    return problem("signing", "the server does not offer signing, which Windows 11 24H2 requires", evidence,
                   "enable signing; Samba: 'server signing = auto'; Windows: Set-SmbServerConfiguration "
                   "-EnableSecuritySignature $true");
}

[[nodiscard]] finding judge_encryption(const negotiation& seen) {
    const negotiate_facts& reply = seen.first.answer.reply;
    if (reply.dialect == dialect::smb_3_1_1 and not seen.ciphers.empty())
        return note("encryption", "the server can encrypt",
                    "ciphers: " + names_of(seen.ciphers, name_of_cipher));
    const bool has_3_0 =
        reply.dialect >= dialect::smb_3_0 and smb::wire::has(reply.capabilities, capabilities::encryption);
    if (has_3_0) return note("encryption", "the server can encrypt", "cipher: AES-128-CCM");
    if (reply.cipher and *reply.cipher != smb::wire::cipher::none)
        return note("encryption", "the server can encrypt", "cipher: " + name_of_cipher(*reply.cipher));
    return warning("encryption",
                   "the server does not offer encryption: clients that require it cannot connect",
                   "dialect " + name_of_dialect(reply.dialect),
                   "enable SMB 3 and encryption; Samba: 'server smb encrypt = desired'; Windows: "
                   "Set-SmbServerConfiguration -EncryptData $true");
}

[[nodiscard]] std::string guid_text(const smb::wire::guid& id) {
    std::string text;
    for (const std::byte each : id.bytes)
        text += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    return text;
}

[[nodiscard]] std::string capability_names(capabilities those) {
    std::vector<const char*> names;
    const auto add = [&](capabilities each, const char* name) {
        if (smb::wire::has(those, each)) names.push_back(name);
    };
    add(capabilities::dfs, "DFS");
    add(capabilities::leasing, "leases");
    add(capabilities::large_mtu, "large requests");
    add(capabilities::multi_channel, "multichannel");
    add(capabilities::persistent_handles, "persistent handles");
    add(capabilities::directory_leasing, "directory leases");
    add(capabilities::encryption, "encryption");
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

void add_limits(std::vector<finding>& found, const negotiate_facts& reply) {
    const auto kib = [](std::uint32_t bytes) { return bytes / 1024; };
    found.push_back(
        note("server", "capabilities: " + capability_names(reply.capabilities),
             fmt::format("reads {} KiB, writes {} KiB, other requests {} KiB; GUID {}; compression: {}{}",
                         kib(reply.read_bytes_max), kib(reply.write_bytes_max), kib(reply.transact_bytes_max),
                         guid_text(reply.server_guid), names_of(reply.compressions, name_of_compression),
                         reply.has_posix ? "; POSIX extensions" : "")));
    const std::uint32_t least =
        std::min({reply.read_bytes_max, reply.write_bytes_max, reply.transact_bytes_max});
    constexpr std::uint32_t usable_bytes = 4096;
    constexpr std::uint32_t fast_bytes = 1U << 20;
    if (least < usable_bytes)
        found.push_back(problem("server",
                                "the server limits requests to less than 4 KiB, which clients reject",
                                fmt::format("{} bytes", least),
                                "Samba: remove 'smb2 max read', 'smb2 max write' and 'smb2 max trans'"));
    else if (least < fast_bytes)
        found.push_back(
            warning("server", "the server limits requests to less than 1 MiB, so transfers are slow",
                    fmt::format("{} bytes", least),
                    "raise its limits; Samba: 'smb2 max read = 8388608', and write and trans alike"));
}

}  // namespace

std::vector<finding> judge_protocol(std::uint16_t port, const negotiation& seen) {
    const probe_outcome& first = seen.first;
    const bool is_smb1 =
        seen.smb1.how == reaction::answered and seen.smb1.answer.protocol == probed_protocol::smb1;
    if (seen.is_smb2()) {
        if (not is_smb1) return {};
        return {warning("protocol", "the server also accepts SMB1, which is not secure",
                        "it accepted the dialect NT LM 0.12", without_smb1_remedy)};
    }
    if (is_smb1 or first.answer.protocol == probed_protocol::smb1)
        return {problem("protocol", "the server speaks only SMB1, which current clients do not use",
                        "it accepted the dialect NT LM 0.12", smb1_remedy)};
    if (first.how != reaction::answered) return {judge_no_answer(port, seen)};
    if (const char* const other = other_protocol(first.answer.protocol); other != nullptr)
        return {
            problem("protocol", fmt::format("the program on port {} speaks {}, not SMB", port, other),
                    fmt::format("{} bytes received", first.received_bytes),
                    "connect to the port of the SMB server, usually 445; 'ss -tlnp' on the server lists the "
                    "ports and their programs")};
    if (first.answer.protocol == probed_protocol::smb2_refused)
        return {problem("protocol", "the server rejects every SMB 2 and 3 dialect",
                        fmt::format("{} (0x{:08x})", smb::wire::name_of(first.answer.status),
                                    static_cast<std::uint32_t>(first.answer.status)),
                        smb1_remedy)};
    if (first.answer.protocol == probed_protocol::smb2_invalid)
        return {problem("protocol", "the reply to NEGOTIATE violates the protocol",
                        fmt::format("{}", smb::wire::name_of(first.answer.violation)),
                        "update the server, and remove proxies between it and the client")};
    return {problem(
        "protocol", fmt::format("the program on port {} speaks an unknown protocol, not SMB", port),
        fmt::format("{} bytes received", first.received_bytes),
        "connect to the port of the SMB server, usually 445; 'ss -tlnp' on the server lists the ports "
        "and their programs")};
}

std::vector<finding> judge_negotiation(const negotiation& seen, std::chrono::system_clock::time_point now) {
    std::vector<finding> found;
    if (not seen.is_smb2()) return found;
    const negotiate_facts& reply = seen.first.answer.reply;
    found.push_back(note("dialect", "the newest common dialect is " + name_of_dialect(reply.dialect),
                         fmt::format("the server accepts {}{}", names_of(seen.dialects, name_of_dialect),
                                     seen.is_complete ? "" : "; it did not answer each offer")));
    if (reply.dialect < dialect::smb_3_1_1)
        found.push_back(warning("dialect",
                                "the server does not support 3.1.1, the only dialect that detects "
                                "tampering with the negotiation",
                                "newest dialect: " + name_of_dialect(reply.dialect),
                                "update the server; Samba: 'server max protocol = SMB3_11'"));
    else if (not reply.has_preauth)
        found.push_back(problem("dialect",
                                "the server chose 3.1.1 without SHA-512, so clients close the connection",
                                "no preauthentication integrity in its reply", "update the server"));
    found.push_back(judge_signing(seen));
    found.push_back(judge_encryption(seen));
    add_limits(found, reply);
    if (reply.system_time.ticks != 0) {
        const auto theirs = smb::wire::unix_time_of(reply.system_time).seconds;
        const auto ours = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
        found.push_back(judge_clock(theirs - ours));
    }
    return found;
}

std::vector<finding> judge_clients(const negotiation& seen) {
    std::vector<finding> found;
    if (not seen.is_smb2()) return found;
    const negotiate_facts& reply = seen.first.answer.reply;
    const std::string newest = "newest dialect " + name_of_dialect(reply.dialect);
    if (reply.security_mode != security_mode::none)
        found.push_back(note("clients",
                             "Windows 11 24H2 can connect with a user and a password; it requires signing, "
                             "so that guest and anonymous logons fail",
                             newest));
    if (reply.dialect >= dialect::smb_2_1)
        found.push_back(
            note("clients", "the Linux kernel can mount its shares with the default options", newest));
    else
        found.push_back(warning("clients", "the Linux kernel does not try dialect 2.0.2 by default", newest,
                                "mount -t cifs -o vers=2.0,username=USER //HOST/SHARE /mnt"));
    found.push_back(note("clients",
                         reply.dialect >= dialect::smb_3_0
                             ? "macOS can connect, and encrypts if the share requires it"
                             : "macOS can connect, but not encrypt",
                         newest));
    return found;
}

}  // namespace sluice::cli::doctor
