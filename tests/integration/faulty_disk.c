/* A file layer that fails as told, between a program and the C library (LD_PRELOAD).
 *
 * Calls count from the first byte that is read from a terminal: reads of terminals, sends and
 * receives, and writes, truncations and syncs of files whose path begins with FAULTY_FILES.
 *
 *   FAULTY_KILL_AT=n     SIGKILL: odd n before call (n+1)/2, even n after call n/2
 *   FAULTY_BEGUN=1       calls count from the start, or from the fork of a process; receives do not:
 *                        they change nothing outside
 *   FAULTY_SYNC_AT=n     the n-th sync of these files fails with EIO, once, and syncs nothing
 *   FAULTY_SYNC_MS=n     every sync of these files takes so long, while the file FAULTY_SWITCH exists
 *   FAULTY_READONLY=1    writes to these files fail with EROFS while the file FAULTY_SWITCH exists
 *   FAULTY_RECORD=path   each write, truncation and sync of these files is appended there, with
 *                        "W offset length path\n" and the bytes, "T length path\n" or "S path\n";
 *                        and "U path\n" for each file that was removed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static long calls, syncs, told_kill, told_sync, sync_ms;
static int has_begun, is_deaf, is_readonly, record = -1;
static const char *files, *knob;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static long number(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

static void begin(void) {
    const char *path = getenv("FAULTY_RECORD");
    calls = syncs = 0;
    has_begun = is_deaf = number("FAULTY_BEGUN") != 0;
    files = getenv("FAULTY_FILES");
    knob = getenv("FAULTY_SWITCH");
    told_kill = number("FAULTY_KILL_AT");
    told_sync = number("FAULTY_SYNC_AT");
    sync_ms = number("FAULTY_SYNC_MS");
    is_readonly = number("FAULTY_READONLY") != 0;
    if (path) record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((constructor)) static void load(void) {
    begin();
    pthread_atfork(NULL, NULL, begin); /* a child goes by the environment at its fork */
}

static const char *path_of(int fd, const char *prefix) {
    static __thread char path[4096];
    char link[64];
    ssize_t size;
    if (!prefix) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0) return NULL;
    path[size] = 0;
    return strncmp(path, prefix, strlen(prefix)) ? NULL : path;
}

static void count(int at_end) {
    if (!has_begun) return;
    if (!at_end) calls++;
    if (told_kill && 2 * calls - !at_end >= told_kill) kill(getpid(), SIGKILL);
}

static int is_on(void) { return knob && access(knob, F_OK) == 0; }

static void note(const char *head, const void *bytes, size_t size) {
    struct iovec parts[2] = {{(void *)head, strlen(head)}, {(void *)bytes, size}};
    if (record >= 0 && writev(record, parts, bytes ? 2 : 1) < 0) abort();
}

static int refuses(int fd) {
    if (!is_readonly || !is_on() || !path_of(fd, files)) return 0;
    errno = EROFS;
    return 1;
}

#define WRITE_AT(name, offset_type)                                                     \
    ssize_t name(int fd, const void *bytes, size_t size, offset_type offset) {          \
        char head[4200];                                                                \
        const char *path = path_of(fd, files);                                          \
        ssize_t done;                                                                   \
        if (!path) return REAL(name)(fd, bytes, size, offset);                          \
        if (refuses(fd)) return -1;                                                     \
        snprintf(head, sizeof head, "W %lld %zu %s\n", (long long)offset, size, path);  \
        count(0);                                                                       \
        note(head, bytes, size);                                                        \
        done = REAL(name)(fd, bytes, size, offset);                                     \
        count(1);                                                                       \
        return done;                                                                    \
    }
WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)

#define TRUNCATE(name, offset_type)                                                     \
    int name(int fd, offset_type size) {                                                \
        char head[4200];                                                                \
        const char *path = path_of(fd, files);                                          \
        int done;                                                                       \
        if (!path) return REAL(name)(fd, size);                                         \
        if (refuses(fd)) return -1;                                                     \
        snprintf(head, sizeof head, "T %lld %s\n", (long long)size, path);              \
        count(0);                                                                       \
        note(head, NULL, 0);                                                            \
        done = REAL(name)(fd, size);                                                    \
        count(1);                                                                       \
        return done;                                                                    \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name)                                                                      \
    int name(int fd) {                                                                  \
        char head[4200];                                                                \
        const char *path = path_of(fd, files);                                          \
        struct timespec pause = {sync_ms / 1000, sync_ms % 1000 * 1000000};             \
        int done;                                                                       \
        if (!path) return REAL(name)(fd);                                               \
        snprintf(head, sizeof head, "S %s\n", path);                                    \
        count(0);                                                                       \
        if (has_begun && ++syncs == told_sync) {                                        \
            errno = EIO;                                                                \
            return -1;                                                                  \
        }                                                                               \
        if (sync_ms && is_on()) nanosleep(&pause, NULL);                                \
        done = REAL(name)(fd);                                                          \
        note(head, NULL, 0);                                                            \
        count(1);                                                                       \
        return done;                                                                    \
    }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
    char head[4200];
    int done = REAL(unlink)(path);
    if (done == 0 && files && !strncmp(path, files, strlen(files))) {
        snprintf(head, sizeof head, "U %s\n", path);
        note(head, NULL, 0);
    }
    return done;
}

ssize_t read(int fd, void *bytes, size_t size) {
    ssize_t done;
    if (!path_of(fd, "/dev/pts/")) return REAL(read)(fd, bytes, size);
    count(0);
    done = REAL(read)(fd, bytes, size);
    if (done > 0) has_begun = 1;
    count(1);
    return done;
}

ssize_t send(int fd, const void *bytes, size_t size, int flags) {
    ssize_t done;
    count(0);
    done = REAL(send)(fd, bytes, size, flags);
    count(1);
    return done;
}

ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    ssize_t done;
    if (!is_deaf) count(0);
    done = REAL(recv)(fd, bytes, size, flags);
    if (!is_deaf) count(1);
    return done;
}
