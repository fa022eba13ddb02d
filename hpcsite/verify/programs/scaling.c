/* A step of what trains or iterates: a fixed amount to compute on each rank, then an all-reduce.
 * Prints `key=value` lines from rank 0, and `allreduce BYTES SECONDS` for several sizes. */
#include <stdio.h>
#include <stdlib.h>

#include "self.h"

enum { COUNT = 1 << 20, WARMUP = 3, STEPS = 20, FLOPS = 4000000, SMALLEST = 1 << 10 };

/* Read as well as written, else the compiler knows the result and computes nothing. */
static volatile double kept = 0.5;

static void compute(void)
{
    double value = kept;

    /* Each depends on the one before, so that no compiler does several at once. */
    for (int i = 0; i < FLOPS; i++)
        value = value * 0.999999 + 1e-6;
    kept = value;
}

static void fill(float *data)
{
    for (int i = 0; i < COUNT; i++)
        data[i] = 1.0f;
}

static int reduce(float *data, int count, int size)
{
    int errors = 0;

    fill(data);
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i += 4096)
        errors += data[i] != (float)size;
    return errors;
}

static double seconds_a_step(float *data, int size, int steps, int *errors)
{
    double begin;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        compute();
        *errors += reduce(data, COUNT, size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / steps;
}

static void time_reduces(float *data, int rank)
{
    for (int count = SMALLEST; count <= COUNT; count *= 4) {
        double begin;

        MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        for (int round = 0; round < 5; round++)
            MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("allreduce %zu %.9f\n", count * sizeof *data, (MPI_Wtime() - begin) / 5);
    }
}

int main(int argc, char **argv)
{
    int rank, size, errors = 0, all = 0;
    float *data = malloc(COUNT * sizeof *data);
    double begin, alone, step;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    remove_self_if_asked(argc, argv);
    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    seconds_a_step(data, size, WARMUP, &errors);
    begin = MPI_Wtime();
    for (int round = 0; round < STEPS; round++) {
        compute();
        fill(data);
    }
    alone = (MPI_Wtime() - begin) / STEPS;
    step = seconds_a_step(data, size, STEPS, &errors);
    MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ranks=%d\nerrors=%d\nbytes=%zu\n", size, all, COUNT * sizeof *data);
        printf("alone_s=%.9f\nstep_s=%.9f\n", alone, step);
    }
    time_reduces(data, rank);
    free(data);
    MPI_Finalize();
    return 0;
}
