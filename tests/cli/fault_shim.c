// LD_PRELOAD library: makes one chosen system call of a program fail, or a signal arrive at it.
//
//   DF11_FAULT=pwrite:3:28     the third pwrite fails with errno 28
//   DF11_FAULT=pwrite:3:SIG2   signal 2 is raised just before the third pwrite
//   DF11_FAULT=shardsync:1:SLEEP3  the first fsync of a .safetensors file takes 3 seconds longer
//   DF11_FAULT=pwrite:*:SHORT  every pwrite (or pread) transfers at most 100 bytes
//   DF11_FAULT=A,B             both
//   DF11_FAULT_COUNTS=FILE     at exit, "call count" lines are written to FILE
//
// Calls are counted over all threads: use --threads 1 where the order matters.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum call { OPEN, PREAD, PWRITE, FALLOCATE, FTRUNCATE, FSYNC, SHARDSYNC, RENAME, N_CALLS };
static const char* const names[N_CALLS] = {"open",      "pread", "pwrite", "fallocate",
                                           "ftruncate", "fsync", "shardsync", "rename"};
static atomic_long counts[N_CALLS];

// What is to become of the n-th call; NULL when nothing special.
static const char* fault_of(enum call call, long n) {
  const size_t length = strlen(names[call]);
  const char* fault = getenv("DF11_FAULT");
  for (; fault != NULL; fault = strchr(fault, ',')) {
    fault += *fault == ',';
    if (strncmp(fault, names[call], length) != 0 || fault[length] != ':') continue;
    const char* at = fault + length + 1;
    const char* what = strchr(at, ':');
    if (what != NULL && (*at == '*' || atol(at) == n)) return what + 1;
  }
  return NULL;
}

// Counts the call; 0 when it may go on, else -1 with errno set. *short_transfer as asked for.
static int before(enum call call, int* short_transfer) {
  const long n = ++counts[call];
  *short_transfer = 0;
  const char* what = fault_of(call, n);
  if (what == NULL) return 0;
  if (strncmp(what, "SHORT", 5) == 0) {
    *short_transfer = 1;
    return 0;
  }
  if (strncmp(what, "SIG", 3) == 0) {
    raise(atoi(what + 3));  // delivered before raise returns
    return 0;
  }
  if (strncmp(what, "SLEEP", 5) == 0) {
    struct timespec left = {.tv_sec = atoi(what + 5)};
    while (nanosleep(&left, &left) != 0) continue;
    return 0;
  }
  errno = atoi(what);
  return -1;
}

#define NEXT(name) (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define OPEN_WRAPPER(name)                         \
  int name(const char* path, int flags, ...) {     \
    int ignored;                                   \
    va_list arguments;                             \
    va_start(arguments, flags);                    \
    const mode_t mode = va_arg(arguments, mode_t); \
    va_end(arguments);                             \
    if (before(OPEN, &ignored) != 0) return -1;    \
    return (NEXT(name))(path, flags, mode);        \
  }
OPEN_WRAPPER(open)
OPEN_WRAPPER(open64)

#define TRANSFER_WRAPPER(name, buffer_type, call)                                 \
  ssize_t name(int fd, buffer_type buffer, size_t n, off_t offset) {              \
    int short_transfer;                                                           \
    if (before(call, &short_transfer) != 0) return -1;                            \
    return (NEXT(name))(fd, buffer, short_transfer && n > 100 ? 100 : n, offset); \
  }
TRANSFER_WRAPPER(pread, void*, PREAD)
TRANSFER_WRAPPER(pread64, void*, PREAD)
TRANSFER_WRAPPER(pwrite, const void*, PWRITE)
TRANSFER_WRAPPER(pwrite64, const void*, PWRITE)

#define WRAPPER(name, parameters, arguments, call) \
  int name parameters {                            \
    int ignored;                                   \
    if (before(call, &ignored) != 0) return -1;    \
    return (NEXT(name))arguments;                  \
  }
WRAPPER(fallocate, (int fd, int mode, off_t offset, off_t n), (fd, mode, offset, n), FALLOCATE)
WRAPPER(fallocate64, (int fd, int mode, off64_t offset, off64_t n), (fd, mode, offset, n),
        FALLOCATE)
WRAPPER(ftruncate, (int fd, off_t n), (fd, n), FTRUNCATE)
WRAPPER(ftruncate64, (int fd, off64_t n), (fd, n), FTRUNCATE)

static int is_shard(int fd) {
  static const char suffix[] = ".safetensors";
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < (ssize_t)sizeof suffix) return 0;
  path[n] = '\0';
  return strcmp(path + n - strlen(suffix), suffix) == 0;
}

int fsync(int fd) {
  int ignored;
  if (before(FSYNC, &ignored) != 0) return -1;
  if (is_shard(fd) && before(SHARDSYNC, &ignored) != 0) return -1;
  return (NEXT(fsync))(fd);
}

WRAPPER(rename, (const char* from, const char* to), (from, to), RENAME)
WRAPPER(renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
        (a, from, b, to, flags), RENAME)

__attribute__((destructor)) static void write_counts(void) {
  const char* path = getenv("DF11_FAULT_COUNTS");
  if (path == NULL) return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  for (int call = 0; call < N_CALLS; ++call)
    fprintf(file, "%s %ld\n", names[call], atomic_load(&counts[call]));
  fclose(file);
}
