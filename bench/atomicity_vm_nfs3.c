// For atomicity_vm.init: the parts that NFS 3 needs besides the kernel, so that the machine needs no rpcbind and no mountd.
//
//     atomicity_vm_nfs3 portmap         answers yes to all that the kernel registers; does not return
//     atomicity_vm_nfs3 mount DIRECTORY    mounts the export whose number is 0 on 127.0.0.1
#include <arpa/inet.h>
#include <linux/nfs_mount.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int read_all(int from, void* into, size_t bytes) {
    for (char* at = into; bytes != 0;) {
        const ssize_t got = read(from, at, bytes);
        if (got <= 0) return 0;
        at += got;
        bytes -= (size_t)got;
    }
    return 1;
}

// RFC 5531: each message is one fragment, whose length is in its first word.
static void answer_calls(int connection) {
    uint32_t call[1024];
    uint32_t length;
    while (read_all(connection, &length, sizeof length)) {
        const size_t bytes = ntohl(length) & 0x7fffffff;
        if (bytes < sizeof call[0] || bytes > sizeof call || !read_all(connection, call, bytes)) return;
        // Fragment header, number of the call, "reply", "accepted", no verifier (two words), "success", "true".
        const uint32_t reply[] = {htonl(0x80000000 | 28), call[0], htonl(1), 0, 0, 0, 0, htonl(1)};
        if (write(connection, reply, sizeof reply) != sizeof reply) return;
    }
}

static int portmap(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/var/run/rpcbind.sock"};
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 8) != 0) return 1;
    for (;;) {
        const int connection = accept(listener, NULL, NULL);
        if (connection < 0) return 1;
        if (fork() == 0) {
            answer_calls(connection);
            return 0;
        }
        close(connection);
    }
}

// Uses the binary form of the options, which has the file handle that mountd would return.
static int mount_export(const char* directory) {
    struct nfs_mount_data data = {.version = 6, .flags = NFS_MOUNT_TCP | NFS_MOUNT_VER3 | NFS_MOUNT_NONLM};
    data.addr.sin_family = AF_INET;
    data.addr.sin_port = htons(2049);
    data.addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    strcpy(data.hostname, "127.0.0.1");
    // Version 1, no authentication, an export by its number, its root; the number.
    static const unsigned char handle[] = {1, 0, 1, 0, 0, 0, 0, 0};
    data.root.size = sizeof handle;
    memcpy(data.root.data, handle, sizeof handle);
    if (mount("127.0.0.1:/export", directory, "nfs", 0, &data) == 0) return 0;
    perror("mount");
    return 1;
}

int main(int count, char** arguments) {
    if (count == 2 && strcmp(arguments[1], "portmap") == 0) return portmap();
    if (count == 3 && strcmp(arguments[1], "mount") == 0) return mount_export(arguments[2]);
    return 2;
}
