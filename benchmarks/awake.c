// awake: keep one core from going to sleep, at a priority below everything else, until the parent ends.
// Waking a virtual core that sleeps takes its waker through the host.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

int main(void) {
  struct sched_param none = {0};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (sched_setscheduler(0, SCHED_IDLE, &none)) return 1;
  for (volatile unsigned long turns = 0;; turns++) {}
}
