// kgen: load generator for any Kafka-compatible broker. Frames are encoded once, so the client costs
// next to nothing and the broker is what gets measured. Loopback only; x86-64 with SSE 4.2.
//
//   kgen COMMAND key=value...            (one JSON line on stdout; exit 0 on success)
//   create   ports= topic= parts=1 rf=1             CreateTopics, then wait for every leader
//   delete   ports= topic=
//   fill     ports= topic= parts=1                  one record into every partition, retrying while not led
//   produce  ports= topic= parts=1 batch=16384 record=100 inflight=5 mb=1000 [rate=MB/s] [secs=]
//   lat      ports= topic= record=100 count=20000   one record per request, one in flight
//   fetch    ports= topic= max=1048576 mb=2000      one fetch in flight, from offset 0
//   e2e      ports= topic= rate=1000 secs=20        producer and long-polling consumer in one process
//   txn      ports= topic= records=1 secs=5         transactions of one batch, one after the other
//   acks     ports= topic= conns=1 secs=5           conns producers, one record and one request in flight each
//   random   ports= topic= end= max=1 count=5000    one fetch in flight, at random offsets below end
//   first    ports= topic= [create=1] secs=120      retry until one record is acked; CLOCK_BOOTTIME of it
// ports is a comma separated list of bootstrap ports. Produce v9 (acks=-1), Fetch v12, Metadata v1,
// CreateTopics v2, DeleteTopics v1, ApiVersions v0; transactions: FindCoordinator v2, InitProducerId v4,
// Produce v12, EndTxn v5, all to the leader of the topic's partition. parts > 1 needs all leaders on one broker.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <nmmintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef unsigned char u8;
enum { FRAME = 12 << 20, REPLY = 96 << 20 };

// --- options, clocks ------------------------------------------------------------------------------
static int argc_;
static char **argv_;
static const char *opt(const char *key, const char *fallback) {
  size_t n = strlen(key);
  for (int i = 2; i < argc_; i++)
    if (!strncmp(argv_[i], key, n) && argv_[i][n] == '=') return argv_[i] + n + 1;
  if (!fallback) { fprintf(stderr, "kgen: missing %s=\n", key); exit(64); }
  return fallback;
}
static long num(const char *key, const char *fallback) { return atol(opt(key, fallback)); }
static double clk(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static double now(void) { return clk(CLOCK_MONOTONIC); }
static double cpu(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}
static int cmp(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return x < y ? -1 : x > y; }
static void quantiles(double *d, long n) {
  qsort(d, n, 8, cmp);
  printf("{\"n\":%ld,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}\n", n, d[n / 2] * 1e6,
         d[n * 9 / 10] * 1e6, d[n * 99 / 100] * 1e6, d[n * 999 / 1000] * 1e6, d[n - 1] * 1e6);
}

// --- encoding -------------------------------------------------------------------------------------
static __thread u8 *W;  // write cursor
static void p8(int v) { *W++ = v; }
static void p16(int v) { *(uint16_t *)W = htobe16(v); W += 2; }
static void p32(int v) { *(uint32_t *)W = htobe32(v); W += 4; }
static void p64(int64_t v) { *(uint64_t *)W = htobe64(v); W += 8; }
static void uvarint(uint64_t v) { while (v > 127) { *W++ = v | 128; v >>= 7; } *W++ = v; }
static void varint(int64_t v) { uvarint(((uint64_t)v << 1) ^ (v >> 63)); }
static int varlen(int64_t v) { uint64_t z = ((uint64_t)v << 1) ^ (v >> 63); int n = 1; while (z > 127) { z >>= 7; n++; } return n; }
static void raw(const void *s, size_t n) { memcpy(W, s, n); W += n; }
static void str(const char *s) { p16(strlen(s)); raw(s, strlen(s)); }
static void cstr(const char *s) { uvarint(strlen(s) + 1); raw(s, strlen(s)); }
static u8 *open_frame(u8 *f, int key, int version, int flexible) {  // returns where the correlation id is
  W = f + 4; p16(key); p16(version); u8 *corr = W; p32(0); str("kgen"); if (flexible) p8(0); return corr;
}
static size_t close_frame(u8 *f) { size_t n = W - f; W = f; p32(n - 4); return n; }
static void patch32(u8 *at, int v) { *(uint32_t *)at = htobe32(v); }

__attribute__((target("sse4.2"))) static uint32_t crc32c(const u8 *p, size_t n) {
  uint64_t x = ~0u;
  for (; n >= 8; n -= 8, p += 8) x = _mm_crc32_u64(x, *(uint64_t *)p);
  uint32_t y = x;
  while (n--) y = _mm_crc32_u8(y, *p++);
  return ~y;
}
static void seal(u8 *b, u8 *end) { patch32(b + 17, crc32c(b + 21, end - b - 21)); }
static int64_t wall_ms(void) { return clk(CLOCK_REALTIME) * 1e3; }
// A v2 batch of records of rec bytes, at most target bytes but at least one record. Returns the count.
static int batch(u8 *b, long target, int rec) {
  W = b; p64(0); p32(0); p32(-1); p8(2); p32(0); p16(0); p32(0); p64(wall_ms()); p64(wall_ms()); p64(-1); p16(-1); p32(-1); p32(0);
  int n = 0;
  do {
    varint(1 + 1 + varlen(n) + varlen(-1) + varlen(rec) + rec + 1);
    p8(0); varint(0); varint(n); varint(-1); varint(rec);
    for (int i = 0; i < rec; i++) *W++ = 'a' + (i * 7 + n) % 26;
    varint(0);
    n++;
  } while (W - b + rec + 16 <= target);
  u8 *e = W;
  patch32(b + 8, e - b - 12); patch32(b + 23, n - 1); patch32(b + 57, n);
  seal(b, e); W = e;
  return n;
}

// --- decoding -------------------------------------------------------------------------------------
static int g16(u8 **q) { int v = (int16_t)be16toh(*(uint16_t *)*q); *q += 2; return v; }
static int g32(u8 **q) { int v = (int32_t)be32toh(*(uint32_t *)*q); *q += 4; return v; }
static uint64_t guv(u8 **q) { uint64_t v = 0; int s = 0; u8 b; do { b = *(*q)++; v |= (uint64_t)(b & 127) << s; s += 7; } while (b & 128); return v; }
static int64_t gv(u8 **q) { uint64_t z = guv(q); return (int64_t)(z >> 1) ^ -(int64_t)(z & 1); }
static void skip_tags(u8 **q) { for (uint64_t n = guv(q); n--;) { guv(q); uint64_t l = guv(q); *q += l; } }

// --- connections ----------------------------------------------------------------------------------
static int ports[64], nports;
static void parse_ports(void) {
  char *s = strdup(opt("ports", NULL));
  for (char *p = strtok(s, ","); p && nports < 64; p = strtok(NULL, ",")) ports[nports++] = atoi(strrchr(p, ':') ? strrchr(p, ':') + 1 : p);
}
static int dial(int port, int timeout_ms) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
  if (timeout_ms) { setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv); setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv); }
  if (connect(s, (void *)&a, sizeof a)) { close(s); return -1; }
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return s;
}
static int put(int s, const u8 *b, size_t n) {
  while (n) { ssize_t k = send(s, b, n, MSG_NOSIGNAL); if (k <= 0) return -1; b += k; n -= k; }
  return 0;
}
static int get(int s, u8 *b, size_t n) {
  while (n) { ssize_t k = recv(s, b, n, 0); if (k <= 0) return -1; b += k; n -= k; }
  return 0;
}
static long reply(int s, u8 *r) {  // body into r; its length or -1
  u8 h[4];
  if (get(s, h, 4)) return -1;
  uint32_t n = be32toh(*(uint32_t *)h);
  if (n > REPLY) return -1;
  return get(s, r, n) ? -1 : (long)n;
}
static void fail(const char *what, int code) { fprintf(stderr, "kgen: %s (%d, %s)\n", what, code, strerror(errno)); exit(2); }

static int metadata(int s, const char *topic, int parts, int *leader_port, int *leaders) {
  u8 f[1024], *r = malloc(4 << 20), *q = r;
  struct { int id, port; } b[64];
  int nb, ret = 0;
  open_frame(f, 3, 1, 0); p32(1); str(topic);
  if (put(s, f, close_frame(f)) || reply(s, r) < 0) { free(r); return -1; }
  q += 4;
  nb = g32(&q);
  for (int i = 0; i < nb; i++) { b[i].id = g32(&q); int n = g16(&q); q += n; b[i].port = g32(&q); n = g16(&q); if (n > 0) q += n; }
  q += 4;
  int nt = g32(&q);
  *leader_port = -1;
  *leaders = 0;
  for (int t = 0; t < nt; t++) {
    ret = g16(&q);
    int n = g16(&q); q += n; q += 1;
    int np = g32(&q);
    for (int i = 0; i < np; i++) {
      int err = g16(&q), idx = g32(&q), leader = g32(&q), k = g32(&q);
      q += 4L * k; k = g32(&q); q += 4L * k;
      if (err == 0 || err == 9) for (int j = 0; j < nb; j++) if (b[j].id == leader) { (*leaders)++; if (idx == 0) *leader_port = b[j].port; }
    }
  }
  free(r);
  (void)parts;
  return ret;
}
static int create(int s, const char *topic, int parts, int rf) {  // error code; 0 or 36 (exists) is fine
  u8 f[1024], r[4096], *q = r;
  open_frame(f, 19, 2, 0); p32(1); str(topic); p32(parts); p16(rf); p32(0); p32(0); p32(30000); p8(0);
  if (put(s, f, close_frame(f)) || reply(s, r) < 0) return -1;
  q += 12; int n = g16(&q); q += n;
  return g16(&q);
}
static int connect_leader(const char *topic, int timeout_ms) {  // first bootstrap that knows a leader
  for (int i = 0; i < nports; i++) {
    int s = dial(ports[i], timeout_ms), port, leaders;
    if (s < 0) continue;
    int err = metadata(s, topic, 1, &port, &leaders);
    if (err == 0 && port == ports[i]) return s;
    close(s);
    if (err == 0 && port > 0 && (s = dial(port, timeout_ms)) >= 0) return s;
  }
  return -1;
}
static void check_versions(int s) {
  u8 f[64], *r = malloc(1 << 16), *q = r;
  open_frame(f, 18, 0, 0);
  if (put(s, f, close_frame(f)) || reply(s, r) < 0) fail("ApiVersions", 0);
  q += 6;
  int ok = 0;
  for (int n = g32(&q); n--;) { int k = g16(&q), lo = g16(&q), hi = g16(&q); ok |= k == 0 && lo <= 9 && hi >= 9; ok |= (k == 1 && lo <= 12 && hi >= 12) << 1; }
  if (ok != 3) fail("broker lacks Produce v9 or Fetch v12", ok);
  free(r);
}

// --- produce --------------------------------------------------------------------------------------
typedef struct { u8 *f, *corr, *part, *b; size_t len, blen; int n; } Frame;
static Frame produce_frame(const char *topic, long target, int rec) {
  Frame p = {.f = malloc(FRAME)};
  u8 *b = malloc(FRAME);
  p.n = batch(b, target, rec);
  p.blen = W - b;
  p.corr = open_frame(p.f, 0, 9, 1);
  uvarint(0); p16(-1); p32(30000); uvarint(2); cstr(topic); uvarint(2); p.part = W; p32(0);
  uvarint(p.blen + 1); p.b = W; raw(b, p.blen); p8(0); p8(0); p8(0);
  p.len = close_frame(p.f);
  free(b);
  return p;
}
static int produce_error(u8 *q) {  // of the single partition in a Produce v9 response body
  q += 4; skip_tags(&q);
  guv(&q); uint64_t n = guv(&q); q += n - 1; guv(&q); q += 4;
  return g16(&q);
}
static int produce_one(int s, Frame *p, u8 *r) { return put(s, p->f, p->len) || reply(s, r) < 0 ? -1 : produce_error(r); }

static void cmd_produce(const char *topic) {
  int s = connect_leader(topic, 0), np = num("parts", "1"), inflight = num("inflight", "5");
  if (s < 0) fail("no leader", 0);
  check_versions(s);
  Frame p = produce_frame(topic, num("batch", "16384"), num("record", "100"));
  double rate = num("rate", "0") * 1e6, secs = num("secs", "0");
  long want = num("mb", "1000") * 1000000L / p.blen, sent = 0, got = 0;
  u8 *r = malloc(1 << 20);
  size_t have = 0;
  double t = now(), u = cpu();
  if (want < 1) want = 1;
  while (got < want) {
    if (secs && now() - t > secs) want = sent;
    while (sent < want && sent - got < inflight) {
      double ahead;
      if (rate && (ahead = sent * (double)p.blen / rate - (now() - t)) > 0) { if (sent > got) break; usleep(ahead * 1e6); }
      patch32(p.part, sent % np); patch32(p.corr, sent);
      if (put(s, p.f, p.len)) fail("send", 0);
      sent++;
    }
    if (got >= want) break;
    ssize_t k = recv(s, r + have, (1 << 20) - have, 0);
    if (k <= 0) fail("recv", 0);
    have += k;
    size_t o = 0;
    while (have - o >= 4) {
      uint32_t n = be32toh(*(uint32_t *)(r + o));
      if (have - o < 4 + n) break;
      int err = produce_error(r + o + 4);
      if (err) fail("produce error", err);
      o += 4 + n; got++;
    }
    memmove(r, r + o, have - o);
    have -= o;
  }
  t = now() - t; u = cpu() - u;
  double bytes = got * (double)p.blen;
  printf("{\"MBs\":%.1f,\"recs\":%.0f,\"reqs\":%.0f,\"n\":%ld,\"bytes\":%.0f,\"batch\":%zu,\"secs\":%.3f,\"client_cpu\":%.3f}\n", bytes / t / 1e6,
         got * (double)p.n / t, got / t, got, bytes, p.blen, t, u);
}
static void cmd_lat(const char *topic) {
  int s = connect_leader(topic, 0);
  long n = num("count", "20000");
  if (s < 0) fail("no leader", 0);
  check_versions(s);
  Frame p = produce_frame(topic, 1, num("record", "100"));
  u8 *r = malloc(1 << 16);
  double *d = malloc(8 * n);
  for (long i = 0; i < n; i++) { double t = now(); int e = produce_one(s, &p, r); if (e) fail("produce", e); d[i] = now() - t; }
  quantiles(d, n);
}

// --- fetch ----------------------------------------------------------------------------------------
static size_t fetch_frame(u8 *f, const char *topic, int part, int64_t offset, int max, int wait) {
  open_frame(f, 1, 12, 1);
  p32(-1); p32(wait); p32(1); p32(64 << 20); p8(0); p32(0); p32(-1); uvarint(2); cstr(topic); uvarint(2);
  p32(part); p32(-1); p64(offset); p32(-1); p64(-1); p32(max); p8(0); p8(0); uvarint(1); uvarint(1); p8(0);
  return close_frame(f);
}
static u8 *fetch_parse(u8 *q, size_t *n, int *err) {  // records of the single partition in a Fetch v12 response body
  q += 4; skip_tags(&q); q += 4;
  *n = 0;
  if ((*err = g16(&q))) return q;
  q += 4;
  if (guv(&q) < 2) return q;
  uint64_t k = guv(&q); q += k - 1;
  guv(&q); q += 4;
  if ((*err = g16(&q))) return q;
  q += 24;
  k = guv(&q);
  for (; k > 1; k--) { q += 16; skip_tags(&q); }  // aborted transactions
  q += 4;
  k = guv(&q);
  *n = k ? k - 1 : 0;
  return q;
}
static u8 *fetch_records(u8 *q, size_t *n) {
  int err;
  q = fetch_parse(q, n, &err);
  if (err) fail("fetch", err);
  return q;
}
static int led(int s, const char *topic, int part) {  // does the broker already answer for the partition?
  static u8 r[8 << 20];
  u8 f[1024];
  size_t n;
  int err = -1;
  if (put(s, f, fetch_frame(f, topic, part, 0, 1, 0)) || reply(s, r) < 0) fail("fetch", 0);
  fetch_parse(r, &n, &err);
  return err == 0;
}
static void cmd_fetch(const char *topic) {
  int s = connect_leader(topic, 0), max = num("max", "1048576");
  if (s < 0) fail("no leader", 0);
  check_versions(s);
  u8 f[1024], *r = malloc(REPLY);
  double want = num("mb", "2000") * 1e6, got = 0;
  long reqs = 0;
  int64_t offset = 0;
  memset(r, 1, 64 << 20);
  double t = now(), u = cpu();
  while (got < want) {
    if (put(s, f, fetch_frame(f, topic, 0, offset, max, 500)) || reply(s, r) < 0) fail("fetch", 0);
    reqs++;
    size_t n;
    u8 *q = fetch_records(r, &n), *e = q + n;
    double before = got;
    while (e - q >= 61) {
      size_t x = be32toh(*(uint32_t *)(q + 8)) + 12u;
      if (x > (size_t)(e - q)) break;
      offset = (int64_t)be64toh(*(uint64_t *)q) + (int32_t)be32toh(*(uint32_t *)(q + 23)) + 1;
      got += x; q += x;
    }
    if (got == before) fail("no progress", 0);
  }
  t = now() - t; u = cpu() - u;
  printf("{\"MBs\":%.1f,\"reqs\":%.0f,\"n\":%ld,\"bytes\":%.0f,\"secs\":%.3f,\"client_cpu\":%.3f}\n", got / t / 1e6, reqs / t, reqs, got, t, u);
}

// --- end to end -----------------------------------------------------------------------------------
static volatile int stopping;
static const char *e2e_topic;
static double *e2e_d;
static volatile long e2e_n;
static long e2e_total;
static void *consumer(void *arg) {
  int s = connect_leader(e2e_topic, 0);
  u8 f[1024], *r = malloc(REPLY);
  int64_t offset = 0;
  (void)arg;
  while (e2e_n < e2e_total && !stopping) {
    if (put(s, f, fetch_frame(f, e2e_topic, 0, offset, 1 << 20, 500)) || reply(s, r) < 0) fail("fetch", 0);
    double t = now();
    size_t n;
    u8 *q = fetch_records(r, &n), *e = q + n;
    while (e - q >= 61) {
      size_t x = be32toh(*(uint32_t *)(q + 8)) + 12u;
      if (x > (size_t)(e - q)) break;
      u8 *v = q + 61;
      gv(&v); v++; gv(&v); gv(&v); int64_t k = gv(&v); if (k > 0) v += k; gv(&v);
      double sent; memcpy(&sent, v, 8);
      e2e_d[e2e_n++] = t - sent;
      offset = (int64_t)be64toh(*(uint64_t *)q) + 1;
      q += x;
    }
  }
  return NULL;
}
static void cmd_e2e(const char *topic) {
  double rate = num("rate", "1000"), secs = num("secs", "20"), skip = num("skip", "10");
  int s = connect_leader(topic, 0);
  if (s < 0) fail("no leader", 0);
  check_versions(s);
  pthread_t th;
  e2e_topic = topic;
  e2e_total = (secs + skip) * rate;
  e2e_d = malloc(8 * (e2e_total + 1));
  pthread_create(&th, NULL, consumer, NULL);
  Frame p = produce_frame(topic, 1, num("record", "100"));
  u8 *v = p.b + 61, *r = malloc(1 << 16);
  gv(&v); v++; gv(&v); gv(&v); gv(&v); gv(&v);
  double t0 = now();
  for (long i = 0; i < e2e_total; i++) {
    double ahead = t0 + i / rate - now();
    if (ahead > 0) usleep(ahead * 1e6);
    double t = now();
    memcpy(v, &t, 8);
    seal(p.b, p.b + p.blen);
    int e = produce_one(s, &p, r);
    if (e) fail("produce", e);
  }
  pthread_join(th, NULL);
  long drop = skip * rate;
  quantiles(e2e_d + drop, e2e_n - drop);
}

#include "kgen_txn.h"
#include "kgen_disk.h"

// --- start-up, topics ------------------------------------------------------------------------
static int first_ack(const char *topic, Frame *p, u8 *r, int make, int timeout_ms) {  // a live socket, or -1
  int s = connect_leader(topic, timeout_ms);
  if (s < 0 && make)
    for (int i = 0; i < nports; i++) {
      int c = dial(ports[i], 10000);
      if (c < 0) continue;
      int e = create(c, topic, 1, num("rf", "1"));
      close(c);
      if (e == 0) break;
    }
  if (s < 0) s = connect_leader(topic, timeout_ms);
  if (s >= 0 && produce_one(s, p, r)) { close(s); s = -1; }
  return s;
}
static void cmd_first(const char *topic) {
  Frame p = produce_frame(topic, 1, 100);
  u8 *r = malloc(1 << 16);
  double end = now() + num("secs", "120");
  long tries = 0;
  while (now() < end) {
    int s = first_ack(topic, &p, r, num("create", "0"), 10000);
    tries++;
    if (s >= 0) { printf("{\"boottime\":%.6f,\"tries\":%ld}\n", clk(CLOCK_BOOTTIME), tries); return; }
    usleep(5000);
  }
  fail("never acked", 0);
}
static void cmd_create(const char *topic) {
  int s = -1, parts = num("parts", "1"), port, leaders = 0;
  for (int i = 0; s < 0 && i < nports; i++) s = dial(ports[i], 60000);
  if (s < 0) fail("connect", 0);
  double t = now();
  int e = create(s, topic, parts, num("rf", "1"));
  if (e && e != 36) fail("CreateTopics", e);
  double made = now() - t;
  while (metadata(s, topic, parts, &port, &leaders) || leaders < parts) { if (now() - t > 120) fail("no leaders", leaders); usleep(5000); }
  for (int i = 0; i < parts; i++) while (!led(s, topic, i)) { if (now() - t > 120) fail("not led", i); usleep(2000); }
  printf("{\"create_ms\":%.1f,\"leaders_ms\":%.1f}\n", made * 1e3, (now() - t) * 1e3);
}
static void cmd_fill(const char *topic) {
  int s = connect_leader(topic, 0), parts = num("parts", "1");
  if (s < 0) fail("no leader", 0);
  Frame p = produce_frame(topic, 1, 100);
  u8 *r = malloc(1 << 16);
  double t = now();
  long retries = 0;
  for (int i = 0; i < parts; i++) {
    int e;
    patch32(p.part, i);
    while ((e = produce_one(s, &p, r))) { if ((e != 3 && e != 5 && e != 6) || now() - t > 120) fail("produce", e); retries++; usleep(2000); }
  }
  printf("{\"ms\":%.1f,\"retries\":%ld}\n", (now() - t) * 1e3, retries);
}
static void cmd_delete(const char *topic) {
  int s = -1;
  u8 f[1024], r[4096], *q = r;
  for (int i = 0; s < 0 && i < nports; i++) s = dial(ports[i], 60000);
  if (s < 0) fail("connect", 0);
  open_frame(f, 20, 1, 0); p32(1); str(topic); p32(30000);
  if (put(s, f, close_frame(f)) || reply(s, r) < 0) fail("DeleteTopics", 0);
  q += 12; int n = g16(&q); q += n;
  int e = g16(&q);
  if (e) fail("DeleteTopics", e);
  printf("{}\n");
}

int main(int argc, char **argv) {
  argc_ = argc; argv_ = argv;
  struct { const char *name; void (*run)(const char *); } cmds[] = {{"create", cmd_create}, {"delete", cmd_delete}, {"fill", cmd_fill}, {"produce", cmd_produce},
    {"lat", cmd_lat}, {"fetch", cmd_fetch}, {"e2e", cmd_e2e}, {"txn", cmd_txn},
    {"acks", cmd_acks}, {"random", cmd_random}, {"first", cmd_first}};
  for (size_t i = 0; argc > 1 && i < sizeof cmds / sizeof *cmds; i++)
    if (!strcmp(argv[1], cmds[i].name)) { parse_ports(); cmds[i].run(opt("topic", NULL)); return 0; }
  fprintf(stderr, "usage: kgen create|delete|fill|produce|lat|fetch|e2e|txn|acks|random|first ports=P[,P] topic=T key=value... (see the head of kgen.c)\n");
  return 64;
}
