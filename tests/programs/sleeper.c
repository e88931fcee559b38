// Its first thread sleeps in three calls, N times in each: until a time, for a byte of a pipe, for a mutex that its other thread
// holds. Prints the numbers of both.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held, wanted, waits, other;
static int pipes[2], n;

static void nap(long us) {
  struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static void *works(void *unused) {
  other = (int)syscall(SYS_gettid);
  for (int i = 0; i < n; i++) {
    nap(3000);
    if (write(pipes[1], "x", 1) != 1) exit(1);
  }
  for (int i = 0; i < n; i++) {
    while (!wanted) nap(100);
    wanted = 0;
    pthread_mutex_lock(&mutex);
    held = 1;
    // However late the first thread sees it.
    while (!waits) nap(100);
    waits = 0;
    nap(3000);
    held = 0;
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

int main(int argc, char **argv) {
  n = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < n; i++) nap(1000);
  pthread_t thread;
  if (pipe(pipes) || pthread_create(&thread, NULL, works, NULL)) return 1;
  char byte;
  for (int i = 0; i < n; i++)
    if (read(pipes[0], &byte, 1) != 1) return 1;
  for (int i = 0; i < n; i++) {
    wanted = 1;
    while (!held) nap(50);
    waits = 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  pthread_join(thread, NULL);
  printf("%d %d\n", getpid(), other);
  return 0;
}
