// What one libc call costs, in ns of processor time, the best of several rounds: run with and without the virtual node's library.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kCalls = 20000, kRounds = 15 };

static int null_fd;

static void call_open(void) { close(open("/dev/null", O_RDONLY)); }
static void call_open_sys(void) { close(open("/sys/kernel/notes", O_RDONLY)); }
static void call_stat(void) {
  struct stat status;
  stat("/etc/hostname", &status);
}
static void call_fstat(void) {
  struct stat status;
  fstat(null_fd, &status);
}
static void call_write(void) {
  if (write(null_fd, "x", 1) != 1) return;
}
static void call_ioctl(void) { ioctl(null_fd, FIONREAD, &(int){0}); }
static void call_mmap(void) {
  void* at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(at, 4096);
}

static double best(void (*call)(void)) {
  double least = 1e18;
  for (int round = 0; round < kRounds; round++) {
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < kCalls / kRounds; i++) call();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    if (ns < least) least = ns;
  }
  return least / (kCalls / kRounds);
}

int main(void) {
  static const struct {
    const char* name;
    void (*call)(void);
  } calls[] = {{"open+close", call_open}, {"open+close below /sys", call_open_sys}, {"stat", call_stat},
               {"fstat", call_fstat},     {"write", call_write},                    {"ioctl", call_ioctl},
               {"mmap+munmap", call_mmap}};
  null_fd = open("/dev/null", O_RDWR);
  for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) printf("%s: %.1f\n", calls[i].name, best(calls[i].call));
  return 0;
}
