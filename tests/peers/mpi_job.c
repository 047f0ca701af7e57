/* A job of several MPI processes, every result checked: a ring of tokens, collective operations, one-sided access.
 *
 *   mpirun -np N mpi_job [MOST_BYTES]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, all;
static size_t most = 4u << 20;

static void require(int condition, const char* what, int line) {
  if (condition) return;
  fprintf(stderr, "rank %d, line %d: %s is not so\n", me, line, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define REQUIRE(condition) require(condition, #condition, __LINE__)

static unsigned char byte_of(size_t message, size_t i) {
  size_t mixed = (i + message * 7919) * 2654435761u;
  return (unsigned char)(mixed >> 24 ^ mixed >> 8);
}

/* Each process sends to the next what it got from the one before; what arrives after a round is one's own. */
static void ring(void) {
  unsigned char* out = malloc(most);
  unsigned char* in = malloc(most);
  for (size_t size = 1; size <= most; size = size * 8 + 3) {
    for (size_t i = 0; i < size; i++) out[i] = byte_of((size_t)me, i);
    for (int step = 1; step <= all; step++) {
      MPI_Status status;
      int count;
      MPI_Sendrecv(out, (int)size, MPI_BYTE, (me + 1) % all, step, in, (int)size, MPI_BYTE, (me + all - 1) % all, step,
                   MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &count);
      REQUIRE((size_t)count == size);
      size_t origin = (size_t)((me + all - step % all) % all);
      for (size_t i = 0; i < size; i++) REQUIRE(in[i] == byte_of(origin, i));
      unsigned char* other = out;
      out = in;
      in = other;
    }
  }
  free(out);
  free(in);
}

static void collectives(void) {
  for (size_t count = 1; count * sizeof(int64_t) <= most; count = count * 16 + 1) {
    int64_t* mine = malloc(count * sizeof *mine);
    int64_t* sum = malloc(count * sizeof *sum);
    for (size_t i = 0; i < count; i++) mine[i] = (int64_t)i * (me + 1);
    MPI_Allreduce(mine, sum, (int)count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) REQUIRE(sum[i] == (int64_t)i * all * (all + 1) / 2);
    MPI_Allreduce(mine, sum, (int)count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) REQUIRE(sum[i] == (int64_t)i * all);
    int root = (int)(count % (size_t)all);
    for (size_t i = 0; i < count; i++) sum[i] = me == root ? (int64_t)i - 7 : 0;
    MPI_Bcast(sum, (int)count, MPI_INT64_T, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) REQUIRE(sum[i] == (int64_t)i - 7);
    free(mine);
    free(sum);
  }
  size_t block = most / (size_t)all / 4;
  int32_t* out = malloc(block * (size_t)all * sizeof *out);
  int32_t* in = malloc(block * (size_t)all * sizeof *in);
  for (int to = 0; to < all; to++)
    for (size_t i = 0; i < block; i++) out[(size_t)to * block + i] = me * 1000 + to + (int)i;
  MPI_Alltoall(out, (int)block, MPI_INT32_T, in, (int)block, MPI_INT32_T, MPI_COMM_WORLD);
  for (int from = 0; from < all; from++)
    for (size_t i = 0; i < block; i++) REQUIRE(in[(size_t)from * block + i] == from * 1000 + me + (int)i);
  free(out);
  free(in);
}

/* Everybody writes into a part of everybody's window and reads it back elsewhere. */
static void put_and_get(void) {
  size_t block = most / (size_t)all;
  unsigned char *window, *local = malloc(block);
  MPI_Win win;
  MPI_Win_allocate((MPI_Aint)(block * (size_t)all), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
  memset(window, 0, block * (size_t)all);
  MPI_Win_fence(0, win);
  for (size_t i = 0; i < block; i++) local[i] = byte_of((size_t)me + 100, i);
  for (int to = 0; to < all; to++)
    MPI_Put(local, (int)block, MPI_BYTE, to, (MPI_Aint)((size_t)me * block), (int)block, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  for (int from = 0; from < all; from++)
    for (size_t i = 0; i < block; i++) REQUIRE(window[(size_t)from * block + i] == byte_of((size_t)from + 100, i));
  for (int from = 0; from < all; from++) {
    int writer = (from + me) % all;
    memset(local, 0, block);
    MPI_Win_lock(MPI_LOCK_SHARED, from, 0, win);
    MPI_Get(local, (int)block, MPI_BYTE, from, (MPI_Aint)((size_t)writer * block), (int)block, MPI_BYTE, win);
    MPI_Win_unlock(from, win);
    for (size_t i = 0; i < block; i++) REQUIRE(local[i] == byte_of((size_t)writer + 100, i));
  }
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  free(local);
}

/* Counters on rank 0 that all change at once. */
static void atomics(void) {
  enum { times = 500 };
  int64_t* counters;
  MPI_Win win;
  MPI_Win_allocate(8 * sizeof *counters, sizeof *counters, MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &win);
  memset(counters, 0, 8 * sizeof *counters);
  MPI_Barrier(MPI_COMM_WORLD);
  int64_t one = 1, before, last = -1, lock = me + 1, none = 0, value;
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < times; i++) {
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    REQUIRE(before > last && before < (int64_t)times * all);
    last = before;
    int64_t more[2] = {me, 2};
    MPI_Accumulate(more, 2, MPI_INT64_T, 0, 1, 2, MPI_INT64_T, MPI_SUM, win);
  }
  MPI_Win_flush(0, win);
  for (int i = 0; i < times / 25; i++) { /* a lock by compare and swap around a read and a write */
    do {
      MPI_Compare_and_swap(&lock, &none, &before, MPI_INT64_T, 0, 3, win);
      MPI_Win_flush(0, win);
    } while (before != 0);
    MPI_Fetch_and_op(NULL, &value, MPI_INT64_T, 0, 4, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    value++;
    MPI_Fetch_and_op(&value, &before, MPI_INT64_T, 0, 4, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
    REQUIRE(before == value - 1);
    MPI_Fetch_and_op(&none, &before, MPI_INT64_T, 0, 3, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
    REQUIRE(before == lock);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    REQUIRE(counters[0] == (int64_t)times * all);
    REQUIRE(counters[1] == (int64_t)times * all * (all - 1) / 2);
    REQUIRE(counters[2] == 2 * (int64_t)times * all);
    REQUIRE(counters[3] == 0 && counters[4] == times / 25 * all);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  if (argc > 1) most = strtoul(argv[1], NULL, 0);
  static const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {{"ring", ring}, {"collectives", collectives}, {"put and get", put_and_get}, {"atomics", atomics}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    parts[i].run();
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) printf("%s: good\n", parts[i].name), fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
