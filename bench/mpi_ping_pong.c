// What bench/peers asks of an MPI, on two ranks: half a round trip of 8 bytes in µs, messages of 8 bytes per second in
// millions, and MB/s of 1 MiB messages, in one line. Defined as verbatim-perf's lat, rate and bw.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { small = 8, large = 1 << 20, window = 64 };
enum { round_trips = 100, batches = 2000, warm_up_batches = 200 };
enum { rate_windows = 16000, warm_up_rate_windows = 1600 };
enum { large_windows = 24, warm_up_large_windows = 4 };
enum { data_tag = 1, reply_tag = 2 };

static char outgoing[large];
static char incoming[large];

static int ascending(const void* left, const void* right) {
  const double l = *(const double*)left;
  const double r = *(const double*)right;
  return (l > r) - (l < r);
}

static double ping_pong(int rank) {
  const double start = MPI_Wtime();
  for (int i = 0; i < round_trips; ++i) {
    if (rank == 0) MPI_Send(outgoing, small, MPI_BYTE, 1, data_tag, MPI_COMM_WORLD);
    MPI_Recv(incoming, small, MPI_BYTE, 1 - rank, data_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(outgoing, small, MPI_BYTE, 0, data_tag, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / (2.0 * round_trips);
}

// The median of many short batches, which like a median of single round trips forgets what disturbs a few.
static double latency(int rank) {
  static double of_batch[batches];
  for (int i = 0; i < warm_up_batches; ++i) (void)ping_pong(rank);
  for (int i = 0; i < batches; ++i) of_batch[i] = ping_pong(rank);
  qsort(of_batch, batches, sizeof(of_batch[0]), ascending);
  return of_batch[batches / 2];
}

static void reply(int rank) {
  if (rank == 0) MPI_Recv(incoming, 0, MPI_BYTE, 1, reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(outgoing, 0, MPI_BYTE, 0, reply_tag, MPI_COMM_WORLD);
}

// Seconds that so many windows take, with a reply to each or to the last.
static double stream(int rank, int bytes, int windows, int reply_to_each) {
  MPI_Request requests[window];
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int w = 0; w < windows; ++w) {
    for (int i = 0; i < window; ++i) {
      if (rank == 0) MPI_Isend(outgoing, bytes, MPI_BYTE, 1, data_tag, MPI_COMM_WORLD, &requests[i]);
      if (rank == 1) MPI_Irecv(incoming, bytes, MPI_BYTE, 0, data_tag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (reply_to_each || w + 1 == windows) reply(rank);
  }
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks != 2) {
    fprintf(stderr, "mpi_ping_pong: %d ranks, not 2\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const double seconds_per_message = latency(rank);
  (void)stream(rank, small, warm_up_rate_windows, 0);
  const double rate = (double)rate_windows * window / stream(rank, small, rate_windows, 0);
  (void)stream(rank, large, warm_up_large_windows, 1);
  const double bandwidth = (double)large_windows * window * large / stream(rank, large, large_windows, 1);
  if (rank == 0) printf("%.4f %.4f %.1f\n", seconds_per_message * 1e6, rate * 1e-6, bandwidth * 1e-6);
  MPI_Finalize();
  return 0;
}
