/* Lets calls fail for which there is a file of that name in the folder $FAULTS, and notes others in $FAULTS/calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void in_folder(char *path, size_t size, const char *name) {
  const char *folder = getenv("FAULTS");
  snprintf(path, size, "%s/%s", folder ? folder : "/nonexistent", name);
}

static int fails(const char *call) {
  char path[4096];
  in_folder(path, sizeof path, call);
  return access(path, F_OK) == 0;
}

static void note(const char *call, const char *what) {
  char path[4096], line[4200];
  in_folder(path, sizeof path, "calls");
  int length = snprintf(line, sizeof line, "%s %s\n", call, what);
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd >= 0) {
    if (write(fd, line, (size_t)length) < 0) errno = 0;
    close(fd);
  }
}

static void note_file(const char *call, int fd) {
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, sizeof name - 1);
  if (length < 0) return;
  name[length] = 0;
  note(call, name);
}

int fdatasync(int fd) {
  if (fails("fdatasync")) {
    errno = EIO;
    return -1;
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
  if (fails("pwrite64")) {
    errno = EIO;
    return -1;
  }
  return ((ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, length, at);
}

int fsync(int fd) {
  note_file("fsync", fd);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int flock(int fd, int operation) {
  if (fails("flock")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(fd, operation);
}

int rename(const char *from, const char *to) {
  note("rename", to);
  if (fails("rename")) {
    errno = EIO;
    return -1;
  }
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
