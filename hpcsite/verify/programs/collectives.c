/* Does MPI move data rightly between all ranks? A ring, an all-reduce and an all-to-all whose
 * results are known. Prints one `key=value` line a fact, from rank 0. */
#include <stdio.h>
#include <stdlib.h>

#include "self.h"

enum { COUNT = 1024, ROUNDS = 10 };

static long ring(int rank, int size)
{
    long token = 0;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    if (rank == 0) {
        token = 1;
        MPI_Send(&token, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&token, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token += rank + 1;
        MPI_Send(&token, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
    }
    return token; /* rank 0 ends with 1 + 2 + ... + size */
}

static int allreduce_errors(int rank, int size)
{
    long in[COUNT], out[COUNT];
    int errors = 0;

    for (int i = 0; i < COUNT; i++)
        in[i] = (long)rank * COUNT + i;
    MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        errors += out[i] != (long)size * (size - 1) / 2 * COUNT + (long)size * i;
    return errors;
}

static int alltoall_errors(int rank, int size)
{
    int *in = malloc(sizeof *in * size), *out = malloc(sizeof *out * size);
    int errors = 0;

    if (in == NULL || out == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < size; i++)
        in[i] = rank * size + i;
    MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        errors += out[i] != i * size + rank;
    free(in);
    free(out);
    return errors;
}

static void print_hosts(int rank, int size)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;

    MPI_Get_processor_name(name, &length);
    if (rank != 0) {
        MPI_Send(name, sizeof name, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        return;
    }
    printf("host=%s\n", name);
    for (int from = 1; from < size; from++) {
        MPI_Recv(name, sizeof name, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("host=%s\n", name);
    }
}

int main(int argc, char **argv)
{
    int rank, size, errors[2] = {0, 0}, all[2];
    long token = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    remove_self_if_asked(argc, argv);
    print_hosts(rank, size);
    for (int round = 0; round < ROUNDS; round++) {
        token = size > 1 ? ring(rank, size) : 1;
        errors[0] += allreduce_errors(rank, size);
        errors[1] += alltoall_errors(rank, size);
    }
    MPI_Reduce(errors, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ranks=%d\nring=%ld\n", size, token);
        printf("allreduce_errors=%d\nalltoall_errors=%d\n", all[0], all[1]);
    }
    MPI_Finalize();
    return 0;
}
