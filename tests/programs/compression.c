// Compressed CQEs, read by hand as a driver reads them: the ring itself, its owner bits and its mini CQEs.
#include <infiniband/mlx5dv.h>
#include <poll.h>

#include "another_device.h"

enum { kRing = 64, kBurst = 40, kLaps = 12, kInvalid = 0xf0, kCompressed = 3 };

static struct World w;
static char buffer[8192];
static struct ibv_mr* mr;

// A completion queue as it lies in memory.
struct Ring {
  struct ibv_cq* cq;
  struct mlx5dv_cq raw;
  uint32_t ci;
  int format;    // enum mlx5dv_cqe_comp_res_format
  int sessions;  // titles seen
  int whole;     // ordinary entries seen
  int longest;   // completions of a session
};

struct Mini {
  uint32_t hash_or_checksum;  // and the stride index
  __be32 byte_cnt;
};

static struct mlx5_cqe64* entry(const struct Ring* r, uint32_t index) {
  char* at = (char*)r->raw.buf + (size_t)(index & (r->raw.cqe_cnt - 1)) * r->raw.cqe_size;
  return (struct mlx5_cqe64*)(at + r->raw.cqe_size - sizeof(struct mlx5_cqe64));
}

static int ready(const struct Ring* r) {
  const uint8_t own = __atomic_load_n(&entry(r, r->ci)->op_own, __ATOMIC_ACQUIRE);
  return own >> 4 != MLX5_CQE_INVALID && (own & 1) == !!(r->ci & r->raw.cqe_cnt);
}

// Takes `n` entries: they are the device's again.
static void consume(struct Ring* r, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) entry(r, r->ci + i)->op_own = kInvalid | 1;
  r->ci += n;
  __atomic_store_n(&r->raw.dbrec[0], htobe32(r->ci & 0xffffff), __ATOMIC_RELEASE);
}

// Lengths and receive counters of the next completions; how many.
static int read_next(struct Ring* r, uint32_t* length, uint16_t* counter) {
  const struct mlx5_cqe64* title = entry(r, r->ci);
  EXPECT(title->op_own >> 4 == MLX5_CQE_RESP_SEND, "opcode %d", title->op_own >> 4);
  const uint16_t first = be16toh(title->wqe_counter);
  if ((title->op_own >> 2 & 3) != kCompressed) {
    ++r->whole;
    length[0] = be32toh(title->byte_cnt);
    counter[0] = first;
    consume(r, 1);
    return 1;
  }
  const int n = (int)be32toh(title->byte_cnt);
  ++r->sessions;
  if (n > r->longest) r->longest = n;
  EXPECT(n > 1 && n <= kBurst, "a session of %d", n);
  CHECK(n > 0 && n <= kRing && (r->ci & (r->raw.cqe_cnt - 1)) + (uint32_t)n <= r->raw.cqe_cnt);
  for (int i = 0; i < n; ++i) {
    const struct Mini* array = (struct Mini*)entry(r, r->ci + (i < 8 ? 1u : (uint32_t)i & ~7u));
    length[i] = be32toh(array[i & 7].byte_cnt);
    counter[i] = r->format == MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX ? be16toh(((const __be16*)&array[i & 7])[1]) : (uint16_t)(first + i);
  }
  consume(r, (uint32_t)n);
  return n;
}

static struct Ring make_ring(int format, int size, struct ibv_comp_channel* channel) {
  struct ibv_cq_init_attr_ex attr = {.cqe = kRing - 1, .wc_flags = IBV_WC_STANDARD_FLAGS, .channel = channel};
  struct mlx5dv_cq_init_attr vendor = {
      .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE | MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
      .cqe_comp_res_format = (uint8_t)format,
      .cqe_size = (uint16_t)size};
  struct Ring r = {.format = format};
  struct ibv_cq_ex* made = mlx5dv_create_cq(w.context, &attr, &vendor);
  CHECK(made);
  r.cq = ibv_cq_ex_to_cq(made);
  struct mlx5dv_obj obj = {.cq = {.in = r.cq, .out = &r.raw}};
  CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
  CHECK(r.raw.cqe_cnt == kRing && (int)r.raw.cqe_size == size);
  return r;
}

// Receives are posted by hand, too: the library frees a place when it polls their completions.
struct Receives {
  struct mlx5dv_qp raw;
  uint16_t posted;
};

static void post_receive(struct Receives* r) {
  struct mlx5_wqe_data_seg* at =
      (struct mlx5_wqe_data_seg*)((char*)r->raw.rq.buf + (size_t)(r->posted & (r->raw.rq.wqe_cnt - 1)) * r->raw.rq.stride);
  mlx5dv_set_data_seg(at, 128, mr->lkey, (uintptr_t)buffer + 4096);
  if (r->raw.rq.stride > sizeof *at) mlx5dv_set_data_seg(at + 1, 0, 0x100, 0);  // MLX5_INVALID_LKEY
  __atomic_store_n(&r->raw.dbrec[MLX5_RCV_DBR], htobe32(++r->posted), __ATOMIC_RELEASE);
}

static struct Receives receives_of(struct ibv_qp* qp) {
  struct Receives r = {.posted = 0};
  struct mlx5dv_obj obj = {.qp = {.in = qp, .out = &r.raw}};
  CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
  CHECK(r.raw.rq.wqe_cnt >= kRing);
  return r;
}

static struct ibv_qp* wide_qp(struct ibv_cq* cq, struct ibv_cq* rcq) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = rcq, .cap = {kRing, kRing, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(w.pd, &init);
  CHECK(qp);
  return qp;
}

// More than an entry could hold: those with data in them are not compressed.
static uint32_t length_of(int i) { return 65 + (uint32_t)(i * 7 % 60); }

// `n` messages of different lengths by one doorbell.
static double quickest;  // microseconds a message, of any burst

static void burst(struct ibv_qp* a, struct Receives* b, struct ibv_cq* cq, int n) {
  struct ibv_sge sge[kBurst];
  struct ibv_send_wr wr[kBurst], *bad;
  memset(wr, 0, sizeof wr);
  for (int i = 0; i < n; ++i) {
    post_receive(b);
    sge[i] = (struct ibv_sge){(uintptr_t)buffer, length_of(i), mr->lkey};
    wr[i].sg_list = &sge[i];
    wr[i].num_sge = 1;
    wr[i].opcode = IBV_WR_SEND;
    wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
    wr[i].send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED;
  }
  const double begin = now_ms();
  CHECK(!ibv_post_send(a, wr, &bad));
  const double each = (now_ms() - begin) * 1e3 / n;
  if (n == kBurst && (quickest == 0 || each < quickest)) quickest = each;
  CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
}

static void receive(struct Ring* r, int n, uint16_t* next_counter) {
  for (int got = 0; got < n;) {
    const double end = now_ms() + 5000;
    while (!ready(r)) CHECK(now_ms() < end);
    uint32_t length[kRing];
    uint16_t counter[kRing];
    const int more = read_next(r, length, counter);
    for (int i = 0; i < more; ++i, ++got, ++*next_counter) {
      EXPECT(length[i] == length_of(got), "message %d has %u bytes", got, length[i]);
      EXPECT(counter[i] == *next_counter, "receive %u of %u", counter[i], *next_counter);
    }
  }
  EXPECT(!ready(r), "more than was sent");
}

static void traffic(int format, int size) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(w.context);
  CHECK(channel);
  struct ibv_cq* cq = ibv_create_cq(w.context, kRing, NULL, NULL, 0);
  struct Ring ring = make_ring(format, size, channel);
  struct ibv_qp *a = wide_qp(cq, cq), *b = wide_qp(cq, ring.cq);
  connect_qp(&w, a, b->qp_num);
  connect_qp(&w, b, a->qp_num);
  struct Receives posted = receives_of(b);
  uint16_t counter = 0;
  quickest = 0;
  for (int lap = 0; lap < kLaps; ++lap) {
    const int n = lap % 2 ? kBurst - lap : kBurst;
    burst(a, &posted, cq, n);
    receive(&ring, n, &counter);
  }
  // A session ends after 16 us: a slow machine (a sanitizer) has short ones, or none.
  EXPECT(quickest > 1 || ring.longest > 8, "format %d, %d bytes: %d sessions of up to %d, %.2f us a message", format, size,
         ring.sessions, ring.longest, quickest);
  // One alone is an ordinary entry.
  const int sessions = ring.sessions;
  for (int i = 0; i < 3; ++i) {
    burst(a, &posted, cq, 1);
    receive(&ring, 1, &counter);
  }
  EXPECT(ring.sessions == sessions, "a session of one");
  // A session is told of as the entries it stands for would be. (The library does not know what was read by hand: the first
  // event is about that.)
  struct pollfd p = {channel->fd, POLLIN, 0};
  for (int round = 0; round < 2; ++round) {
    CHECK(!ibv_req_notify_cq(ring.cq, 0));
    if (round) {
      EXPECT(poll(&p, 1, 20) == 0, "an event about nothing");
      burst(a, &posted, cq, 12);
    }
    EXPECT(poll(&p, 1, 3000) == 1, "no event");
    struct ibv_cq* fired;
    void* cookie;
    CHECK(!ibv_get_cq_event(channel, &fired, &cookie) && fired == ring.cq);
    ibv_ack_cq_events(fired, 1);
  }
  receive(&ring, 12, &counter);
  // Errors are written whole.
  for (int i = 0; i < 5; ++i) post_receive(&posted);
  CHECK(!go(b, IBV_QPS_ERR, attributes(&w, 0), 0));
  for (int i = 0; i < 5; ++i) {
    CHECK(ready(&ring));
    const struct mlx5_err_cqe* e = (const struct mlx5_err_cqe*)entry(&ring, ring.ci);
    EXPECT(e->op_own >> 4 == MLX5_CQE_RESP_ERR && !(e->op_own >> 2 & 3) && e->syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
           "flushed: %#x, syndrome %#x", e->op_own, e->syndrome);
    consume(&ring, 1);
  }
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(ring.cq) && !ibv_destroy_cq(cq) &&
        !ibv_destroy_comp_channel(channel));
}

// A device without it.
static void absent(void) {
  struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION};
  CHECK(!mlx5dv_query_device(w.context, &dv));
  EXPECT(!dv.cqe_comp_caps.supported_format && !dv.cqe_comp_caps.max_num && !(dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP),
         "formats %#x, %u, flags %#llx", dv.cqe_comp_caps.supported_format, dv.cqe_comp_caps.max_num, (unsigned long long)dv.flags);
  struct ibv_cq_init_attr_ex attr = {.cqe = 1};
  struct mlx5dv_cq_init_attr vendor = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
                                       .cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH};
  errno = 0;
  EXPECT(!mlx5dv_create_cq(w.context, &attr, &vendor) && errno == EINVAL, "errno %d", errno);
}

static void limits(void) {
  struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION};
  CHECK(!mlx5dv_query_device(w.context, &dv));
  const uint32_t all = MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX;
  EXPECT((dv.comp_mask & MLX5DV_CONTEXT_MASK_CQE_COMPRESION) && dv.cqe_comp_caps.supported_format == all && dv.cqe_comp_caps.max_num >= kBurst,
         "formats %#x, %u", dv.cqe_comp_caps.supported_format, dv.cqe_comp_caps.max_num);
  EXPECT(dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP, "flags %#llx", (unsigned long long)dv.flags);
  struct ibv_cq_init_attr_ex attr = {.cqe = 1};
  struct mlx5dv_cq_init_attr vendor = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE};
  const int wrong[] = {0, 1 << 3, MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM};
  for (int i = 0; i < 3; ++i) {
    vendor.cqe_comp_res_format = (uint8_t)wrong[i];
    errno = 0;
    EXPECT(!mlx5dv_create_cq(w.context, &attr, &vendor) && errno == EINVAL, "format %#x: errno %d", wrong[i], errno);
  }
}

int main(int argc, char** argv) {
  w = open_world();
  if (argc > 1) {
    CHECK(!strcmp(argv[1], "absent"));
    absent();
    close_world(&w);
    return failures != 0;
  }
  CHECK(mr = ibv_reg_mr(w.pd, buffer, sizeof buffer, kAllAccess));
  limits();
  const int formats[] = {MLX5DV_CQE_RES_FORMAT_HASH, MLX5DV_CQE_RES_FORMAT_CSUM, MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX};
  for (int i = 0; i < 3; ++i)
    for (int size = 64; size <= 128; size *= 2) traffic(formats[i], size);
  CHECK(!ibv_dereg_mr(mr));
  close_world(&w);
  const int status = run_on_another_device("absent", "[limits]\ncqe_compression = 0\n");
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
  if (failures) return 1;
  puts("ok");
  return 0;
}
