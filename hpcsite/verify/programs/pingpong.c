/* Latency and bandwidth between rank 0 and rank 1. Prints from rank 0:
 *   latency_us=MEDIAN          half a round trip of a message of one byte
 *   bandwidth BYTES GB_PER_S   the best of several repeats; 1 GB is 10^9 bytes
 * Bandwidth is that of a window of messages in one direction, as in osu_bw. Each part ends early
 * when its time is over, and sizes end where a window takes too long, so that nodes which are slow
 * or loaded are measured too. */
#include <stdio.h>
#include <stdlib.h>

#include "self.h"

enum { WARM_UP = 200, EXCHANGES = 2000, WINDOW = 16, REPEATS = 5 };
#define LARGEST (4 << 20)
#define BYTES_A_REPEAT (32 << 20)
#define LATENCY_S 2.0
#define BANDWIDTH_S 0.5
#define WINDOW_S 1.0

static double times[EXCHANGES];

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The byte that goes round says whether another exchange follows. */
static double latency_us(int rank)
{
    char more = 1;
    int count = 0;
    double begin = MPI_Wtime();

    for (int i = -WARM_UP; more; i++) {
        double start = MPI_Wtime();
        if (rank == 0) {
            more = i + 1 < EXCHANGES && start - begin < LATENCY_S;
            MPI_Send(&more, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&more, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&more, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&more, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
        if (i >= 0 || !more)
            times[count++] = (MPI_Wtime() - start) / 2 * 1e6;
    }
    qsort(times, count, sizeof *times, by_size);
    return times[count / 2];
}

static double seconds_of(int rank, char *buffer, int bytes, int rounds)
{
    MPI_Request requests[WINDOW];
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank == 0)
                MPI_Isend(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(buffer + (size_t)i * bytes, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD,
                          &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        MPI_Recv(buffer, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(buffer, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

/* `slow` is set where one window alone takes so long that larger messages would take minutes. */
static double best_gbyte_s(int rank, char *buffer, int bytes, int *slow)
{
    int rounds = BYTES_A_REPEAT / (bytes * WINDOW);
    double first = seconds_of(rank, buffer, bytes, 1);
    double best = (double)bytes * WINDOW / first / 1e9, begin = MPI_Wtime();
    int more;

    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    *slow = first > WINDOW_S;
    if (rounds > 64)
        rounds = 64;
    if (rounds > BANDWIDTH_S / first)
        rounds = BANDWIDTH_S / first;
    if (rounds < 1)
        rounds = 1;
    more = first < BANDWIDTH_S;
    for (int repeat = 0; more; repeat++) {
        double seconds = seconds_of(rank, buffer, bytes, rounds);
        double rate = (double)bytes * WINDOW * rounds / seconds / 1e9;
        if (rate > best)
            best = rate;
        more = repeat + 1 < REPEATS && MPI_Wtime() - begin < BANDWIDTH_S;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return best;
}

int main(int argc, char **argv)
{
    int rank, size, slow = 0;
    double latency;
    char *buffer = calloc(WINDOW, LARGEST);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    remove_self_if_asked(argc, argv);
    if (size != 2 || buffer == NULL) {
        fprintf(stderr, "error: needs two ranks and %d MiB\n", (WINDOW * LARGEST) >> 20);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    latency = latency_us(rank);
    if (rank == 0)
        printf("latency_us=%.3f\n", latency);
    for (int bytes = 1 << 10; bytes <= LARGEST && !slow; bytes *= 4) {
        double rate = best_gbyte_s(rank, buffer, bytes, &slow);
        if (rank == 0)
            printf("bandwidth %d %.6f\n", bytes, rate);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
