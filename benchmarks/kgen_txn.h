// Transactions one after the other: part of kgen.c, which includes it.
static const char *TXN_ID = "kgen";
enum { COORDINATOR_LOADING = 14, COORDINATOR_NOT_AVAILABLE = 15, NOT_COORDINATOR = 16, CONCURRENT_TRANSACTIONS = 51 };
static int again(int e) { return e == CONCURRENT_TRANSACTIONS || (e >= COORDINATOR_LOADING && e <= NOT_COORDINATOR); }
static int64_t g64(u8 **q) { int64_t v = be64toh(*(uint64_t *)*q); *q += 8; return v; }
static void init_producer(int s, int64_t *id, int *epoch, u8 *r) {
  u8 f[256];
  int e;
  do {
    u8 *q = r;
    open_frame(f, 10, 2, 0); str(TXN_ID); p8(1);
    if (put(s, f, close_frame(f)) || reply(s, r) < 0) fail("FindCoordinator", 0);
    open_frame(f, 22, 4, 1); cstr(TXN_ID); p32(60000); p64(-1); p16(-1); p8(0);
    if (put(s, f, close_frame(f)) || reply(s, r) < 0) fail("InitProducerId", 0);
    q += 4; skip_tags(&q); q += 4;
    e = g16(&q);
    *id = g64(&q); *epoch = g16(&q);
    if (e && again(e)) usleep(20000);
  } while (again(e));
  if (e) fail("InitProducerId", e);
}
static void cmd_txn(const char *topic) {
  int s = connect_leader(topic, 0), records = num("records", "1"), rec = num("record", "100"), epoch;
  if (s < 0) fail("no leader", 0);
  u8 *f = malloc(FRAME), *b = malloc(FRAME), *r = malloc(1 << 16), e[256], *end_id, *end_epoch;
  int64_t id;
  init_producer(s, &id, &epoch, r);
  int n = batch(b, records > 1 ? 61 + (long)records * (rec + 9) + 16 : 1, rec);
  size_t blen = W - b;
  open_frame(f, 0, 12, 1);
  cstr(TXN_ID); p16(-1); p32(30000); uvarint(2); cstr(topic); uvarint(2); p32(0);
  uvarint(blen + 1); u8 *in = W; raw(b, blen); p8(0); p8(0); p8(0);
  size_t len = close_frame(f);
  open_frame(e, 26, 5, 1); cstr(TXN_ID); end_id = W; p64(0); end_epoch = W; p16(0); p8(1); p8(0);
  size_t elen = close_frame(e);
  in[22] |= 0x10;
  long want = 1 << 22, done = 0;
  double *d = malloc(8 * want), secs = num("secs", "5"), t0 = now();
  while (done < want && now() - t0 < secs) {
    double t = now();
    W = in + 43; p64(id); p16(epoch); p32(0);
    seal(in, in + blen);
    int err;
    while (again(err = put(s, f, len) || reply(s, r) < 0 ? -1 : produce_error(r))) usleep(1000);
    if (err) fail("produce", err);
    W = end_id; p64(id); W = end_epoch; p16(epoch);
    for (;;) {
      u8 *q = r;
      if (put(s, e, elen) || reply(s, r) < 0) fail("EndTxn", 0);
      q += 4; skip_tags(&q); q += 4;
      err = g16(&q);
      if (!again(err)) { if (err) fail("EndTxn", err); id = g64(&q); epoch = g16(&q); break; }
      usleep(1000);
    }
    d[done++] = now() - t;
  }
  double took = now() - t0;
  qsort(d, done, 8, cmp);
  printf("{\"tps\":%.1f,\"records\":%d,\"n\":%ld,\"p50\":%.1f,\"p99\":%.1f}\n", done / took, n, done, d[done / 2] * 1e6, d[done * 99 / 100] * 1e6);
}
