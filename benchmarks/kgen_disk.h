// Loads that meet the disk: part of kgen.c, which includes it.
#include <poll.h>
static void cmd_acks(const char *topic) {  // many producers of one record each, one in flight, from one thread
  int n = num("conns", "1");
  double secs = num("secs", "5");
  Frame p = produce_frame(topic, 1, num("record", "100"));
  struct pollfd *c = calloc(n, sizeof *c);
  u8 *r = malloc(1 << 16);
  long got = 0, most = 1L << 22;
  double *sent = calloc(n, 8), *d = malloc(8 * most);
  for (int i = 0; i < n; i++) {
    c[i].fd = connect_leader(topic, 0);
    c[i].events = POLLIN;
    if (c[i].fd < 0) fail("no leader", 0);
    sent[i] = now();
    if (put(c[i].fd, p.f, p.len)) fail("send", 0);
  }
  double t = now();
  while (now() - t < secs && got < most) {
    if (poll(c, n, 10000) <= 0) fail("poll", 0);
    for (int i = 0; i < n && got < most; i++) {
      if (!c[i].revents) continue;
      int e;
      if (reply(c[i].fd, r) < 0 || (e = produce_error(r))) fail("produce", 0);
      d[got++] = now() - sent[i];
      sent[i] = now();
      if (put(c[i].fd, p.f, p.len)) fail("send", 0);
    }
  }
  t = now() - t;
  qsort(d, got, 8, cmp);
  printf("{\"acks\":%.1f,\"n\":%ld,\"p50\":%.1f,\"p99\":%.1f}\n", got / t, got, d[got / 2] * 1e6, d[got * 99 / 100] * 1e6);
}
static void cmd_random(const char *topic) {  // small fetches at random offsets below end=, one in flight
  int s = connect_leader(topic, 0), max = num("max", "1");
  long n = num("count", "5000"), end = num("end", NULL);
  if (s < 0) fail("no leader", 0);
  u8 f[1024], *r = malloc(REPLY);
  double *d = malloc(8 * n);
  srandom(7);
  for (long i = 0; i < n; i++) {
    size_t k;
    double t = now();
    if (put(s, f, fetch_frame(f, topic, 0, random() % end, max, 500)) || reply(s, r) < 0) fail("fetch", 0);
    fetch_records(r, &k);
    if (k < 61) fail("nothing fetched", k);
    d[i] = now() - t;
  }
  quantiles(d, n);
}
