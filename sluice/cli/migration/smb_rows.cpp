#include "sluice/cli/migration/smb_rows.hpp"

#include <algorithm>
#include <array>

namespace sluice::cli {
namespace {

using enum smb_rule;

constexpr const char* not_needed = "not needed";

constexpr std::array share_table{
    smb_row{"path", converted},
    smb_row{"readonly", converted},
    smb_row{"guestok", converted},
    smb_row{"available", converted},
    smb_row{"printable", converted},
    smb_row{"guestonly", none, "",
            "anonymous users can connect if guest is set; others log on with their name"},
    smb_row{"comment", copied, "comment"},
    smb_row{"browseable", opposite, "hidden"},
    smb_row{"validusers", users, "user"},
    smb_row{"readlist", users, "read-only-user", "serve the directory twice, once with read-only"},
    smb_row{"writelist", converted, "write-user",
            "serve the directory twice: with read-only, and with user for those that may write"},
    smb_row{"adminusers", none, "", "the rights of root are not given; change the permissions of the files"},
    smb_row{"invalidusers", restricting, "", "list the users that have access in user"},
    smb_row{"hostsallow", hosts, "allowed-host", "use the firewall"},
    smb_row{"hostsdeny", hosts, "denied-host", "use the firewall"},
    smb_row{"forceuser", account, "owner", "without impersonate, the account of the server owns new files",
            setting_kind::text,
            "it is the owner of new files, but with impersonate users access files with their own accounts"},
    smb_row{"forcegroup", account, "group", "set the group and the set-group-ID bit of the directory",
            setting_kind::text, "it is the group of new files, and gives users no rights"},
    smb_row{"createmask", file_mode, "file-mode", "set the umask of the server, or a default ACL"},
    smb_row{"forcecreatemode", file_mode, "file-mode", "set a default ACL of the directory"},
    smb_row{"directorymask", file_mode, "folder-mode", "set the umask of the server, or a default ACL"},
    smb_row{"forcedirectorymode", file_mode, "folder-mode", "set a default ACL of the directory"},
    smb_row{"inheritowner", copied, "inherit-owner", "new files belong to the account that creates them",
            setting_kind::boolean},
    smb_row{"inheritpermissions", none, "", "set a default ACL of the directory"},
    smb_row{"inheritacls", standard, "", "the kernel applies default ACLs"},
    smb_row{"hidefiles", patterns, "hide", "set the attribute 'hidden' of the files", setting_kind::list},
    smb_row{"vetofiles", patterns, "reject", "move the files out of the share", setting_kind::list},
    smb_row{"deletevetofiles", none, "", "rejected files do not exist for clients"},
    smb_row{"hidedotfiles", copied, "hide-dot-files", "files that begin with a dot are visible",
            setting_kind::boolean},
    smb_row{"hideunreadable", copied, "hide-unreadable"},
    smb_row{"accessbasedshareenum", none, "", "set hidden for the share"},
    smb_row{"manglednames", copied, "short-names"},
    smb_row{"maxdisksize", megabytes, "size-limit"},
    smb_row{"msdfsproxy", referral, "referral"},
    smb_row{"msdfsroot", none, "", "add a share with referral for each link"},
    smb_row{"serversmbencrypt", converted},
    smb_row{"vfsobjects", converted},
    smb_row{"shadow:*", converted},
    smb_row{"recycle:*", none, "", "set the options of the setting recycle, if there is one"},
    smb_row{"full_audit:*", none, "", "'--verbose' logs failed requests"},
    smb_row{"fruit:*", none, "", "metadata of macOS is stored as named streams; see 'sluice streams import'"},
    smb_row{"streams_depot:*", standard},
    smb_row{"streams_xattr:*", standard},
    smb_row{"acl_xattr:*", standard},
    smb_row{"catia:*", none, "", "names have the characters that the file system has"},
    smb_row{"casesensitive", standard, "", "names are case-insensitive and keep their case"},
    smb_row{"preservecase", standard},
    smb_row{"shortpreservecase", standard},
    smb_row{"defaultcase", standard},
    smb_row{"oplocks", standard},
    smb_row{"level2oplocks", standard},
    smb_row{"kerneloplocks", standard},
    smb_row{"kernelsharemodes", standard},
    smb_row{"posixlocking", standard},
    smb_row{"locking", standard},
    smb_row{"strictlocking", standard},
    smb_row{"strictsync", standard},
    smb_row{"syncalways", none, "", "clients decide when data is stored durably"},
    smb_row{"durablehandles", standard},
    smb_row{"easupport", standard},
    smb_row{"storedosattributes", standard},
    smb_row{"maparchive", standard},
    smb_row{"maphidden", standard},
    smb_row{"mapsystem", standard},
    smb_row{"mapreadonly", standard},
    smb_row{"ntaclsupport", standard},
    smb_row{"followsymlinks", standard, "", "links are followed within the share only"},
    smb_row{"widelinks", none, "", "links out of the share are never followed; share the other directory"},
    smb_row{"usesendfile", standard, "", not_needed},
    smb_row{"aioreadsize", standard, "", not_needed},
    smb_row{"aiowritesize", standard, "", not_needed},
    smb_row{"writecachesize", standard, "", not_needed},
    smb_row{"allocationroundupsize", standard, "", not_needed},
    smb_row{"strictallocate", standard, "", not_needed},
    smb_row{"dfreecommand", none, "", "use size-limit, or a quota of the kernel"},
    smb_row{"dosfilemode", none, "", "the permissions of the file decide"},
    smb_row{"dosfiletimes", standard},
    smb_row{"maxconnections", none, "", "'sluice serve --limits' prints the limits"},
    smb_row{"preexec", none, "", "no command runs when a client connects"},
    smb_row{"rootpreexec", none, "", "no command runs when a client connects"},
    smb_row{"postexec", none, "", "no command runs when a client disconnects"},
    smb_row{"rootpostexec", none, "", "no command runs when a client disconnects"},
    smb_row{"volume", none, "", "the name of the share is the label"},
    smb_row{"fstype", none, "", "clients see NTFS, which they need"},
    smb_row{"username", none, "", "list the users in user"},
};

constexpr std::array server_table{
    smb_row{"netbiosname", copied, "name"},
    smb_row{"workgroup", copied, "workgroup", "clients do not need it to connect"},
    smb_row{"serverstring", copied, "server-string", "clients do not need it to connect"},
    smb_row{"interfaces", converted},
    smb_row{"bindinterfacesonly", converted},
    smb_row{"smbports", converted},
    smb_row{"serversigning", converted},
    smb_row{"serversmbencrypt", converted},
    smb_row{"maptoguest", standard, "", "an unknown name is never a guest; guests log on anonymously"},
    smb_row{"guestaccount", account, "guest-account", "guests have the rights of the account of the server"},
    smb_row{"security", converted},
    smb_row{"serverrole", converted},
    smb_row{"realm", none, "", "domains are not supported: keep Samba for members of a domain"},
    smb_row{"idmapconfig*", none, "", "domains are not supported: keep Samba for members of a domain"},
    smb_row{"winbind*", none, "", "domains are not supported: keep Samba for members of a domain"},
    smb_row{"passdbbackend", none, "",
            "run 'pdbedit -L -w', and import its output with 'sluice user import'"},
    smb_row{"smbpasswdfile", none, "", "import it with 'sluice user import'"},
    smb_row{"usernamemap", none, "", "users log on with the names of the users file"},
    smb_row{"serverminprotocol", standard, "", "clients need SMB 2.0.2 or later"},
    smb_row{"servermaxprotocol", none, "", "dialects up to SMB 3.1.1 are offered"},
    smb_row{"servermultichannelsupport", standard},
    smb_row{"smb2leases", standard},
    smb_row{"loglevel", none, "", "use --verbose"},
    smb_row{"logfile", none, "", "the log goes to standard error, and so to the journal of systemd"},
    smb_row{"logging", none, "", "the log goes to standard error, and so to the journal of systemd"},
    smb_row{"maxlogsize", none, "", "the log goes to standard error, and so to the journal of systemd"},
    smb_row{"syslog", none, "", "the log goes to standard error, and so to the journal of systemd"},
    smb_row{"deadtime", standard, "", "idle connections are bounded"},
    smb_row{"keepalive", standard},
    smb_row{"maxopenfiles", standard, "", "'sluice serve --limits' prints the limits"},
    smb_row{"socketoptions", standard, "", not_needed},
    smb_row{"getwdcache", standard, "", not_needed},
    smb_row{"dnsproxy", none, "", "NetBIOS names are not resolved; clients use DNS"},
    smb_row{"winssupport", none, "", "NetBIOS names are not resolved; clients use DNS"},
    smb_row{"winsserver", none, "", "NetBIOS names are not resolved; clients use DNS"},
    smb_row{"nameresolveorder", none, "", "NetBIOS names are not resolved; clients use DNS"},
    smb_row{"disablenetbios", standard},
    smb_row{"localmaster", none, "", "there is no browsing over NetBIOS"},
    smb_row{"preferredmaster", none, "", "there is no browsing over NetBIOS"},
    smb_row{"domainmaster", none, "", "there is no browsing over NetBIOS"},
    smb_row{"domainlogons", none, "", "domains are not supported: keep Samba for domain controllers"},
    smb_row{"oslevel", none, "", "there is no browsing over NetBIOS"},
    smb_row{"loadprinters", none, "", "printers are not supported"},
    smb_row{"printing", none, "", "printers are not supported"},
    smb_row{"printcapname", none, "", "printers are not supported"},
    smb_row{"cupsoptions", none, "", "printers are not supported"},
    smb_row{"disablespoolss", none, "", "printers are not supported"},
    smb_row{"usershare*", none, "", "add each share to the configuration"},
    smb_row{"unixpasswordsync", none, "", "passwords of the host are separate; use 'sluice user passwd'"},
    smb_row{"pampasswordchange", none, "", "passwords of the host are separate; use 'sluice user passwd'"},
    smb_row{"passwdprogram", none, "", "passwords of the host are separate; use 'sluice user passwd'"},
    smb_row{"passwdchat", none, "", "passwords of the host are separate; use 'sluice user passwd'"},
    smb_row{"obeypamrestrictions", restricting, "", "accounts that PAM would refuse can log on"},
    smb_row{"encryptpasswords", standard},
    smb_row{"nullpasswords", none, "", "empty passwords are never accepted"},
    smb_row{"lanmanauth", none, "", "only NTLMv2 is accepted"},
    smb_row{"ntlmauth", none, "", "only NTLMv2 is accepted"},
    smb_row{"panicaction", none, "", "systemd starts the server again"},
    smb_row{"unixextensions", none, "", "clients of Linux use 'mount -t cifs' without POSIX extensions"},
    smb_row{"unixcharset", standard, "", "names are UTF-8"},
    smb_row{"doscharset", none, "", "names are UTF-8"},
    smb_row{"hostmsdfs", standard},
    smb_row{"restrictanonymous", standard},
    smb_row{"timeserver", standard},
    smb_row{"multicastdnsregister", copied, "discovery", "the server is not advertised",
            setting_kind::boolean},
    smb_row{"registryshares", none, "", "run 'testparm -s', and import its output"},
    smb_row{"configbackend", none, "", "run 'testparm -s', and import its output"},
    smb_row{"clustering", none, "", "clusters are not supported: keep Samba"},
    smb_row{"client*", none, "", "it configures the programs of Samba, not the server"},
};

constexpr std::array module_table{
    smb_row{"shadow_copy2", converted},
    smb_row{"recycle", copied, "recycle", "deleted files are deleted", setting_kind::boolean},
    smb_row{"full_audit", copied, "audit-log", "'--verbose' logs failed requests"},
    smb_row{"audit", copied, "audit-log", "'--verbose' logs failed requests"},
    smb_row{"extd_audit", copied, "audit-log", "'--verbose' logs failed requests"},
    smb_row{"streams_xattr", standard, "", "run 'sluice streams import' for existing streams"},
    smb_row{"streams_depot", standard, "", "run 'sluice streams import' for existing streams"},
    smb_row{"acl_xattr", standard, "", "security descriptors are stored under another name"},
    smb_row{"acl_tdb", none, "", "security descriptors of the database are not read"},
    smb_row{"fruit", none, "", "metadata of macOS is stored as named streams; see 'sluice streams import'"},
    smb_row{"catia", none, "", "names have the characters that the file system has"},
    smb_row{"btrfs", standard},
    smb_row{"io_uring", standard},
    smb_row{"aio_pthread", standard},
    smb_row{"readahead", standard, "", not_needed},
    smb_row{"dirsort", none, "", "clients sort lists"},
    smb_row{"crossrename", none, "", "clients copy and delete instead"},
    smb_row{"default_quota", none, "", "'quotas' uses the quotas of the kernel"},
    smb_row{"virusfilter", restricting, "", "scan the files on the host"},
    smb_row{"worm", restricting, "", "set read-only, or make the files immutable"},
};

}  // namespace

std::span<const smb_row> share_rows() noexcept {
    return share_table;
}

std::span<const smb_row> server_rows() noexcept {
    return server_table;
}

std::span<const smb_row> module_rows() noexcept {
    return module_table;
}

const smb_row* row_of(std::span<const smb_row> rows, std::string_view parameter) noexcept {
    const auto found = std::ranges::find_if(rows, [&](const smb_row& row) {
        return row.parameter.ends_with('*')
                   ? parameter.starts_with(row.parameter.substr(0, row.parameter.size() - 1))
                   : row.parameter == parameter;
    });
    return found == rows.end() ? nullptr : &*found;
}

}  // namespace sluice::cli
