// A program that runs itself again, on a virtual host of its own whose device is another.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

// `profile` is the text of docs/profile.md's file, `argument` what the program is to find as its only one, and the host's
// name. Its wait status.
static inline int run_on_another_device(const char* argument, const char* profile) {
  char path[] = "/tmp/verbena-profile-XXXXXX";
  const int fd = mkstemp(path);
  CHECK(fd >= 0 && write(fd, profile, strlen(profile)) == (ssize_t)strlen(profile) && !close(fd));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    setenv("VERBENA_PROFILE", path, 1);
    setenv("VERBENA_HOST", argument, 1);
    execl("/proc/self/exe", argument, argument, (char*)NULL);
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  unlink(path);
  return status;
}
