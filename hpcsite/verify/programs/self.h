/* `srun --bcast` leaves its copy of a program on every node. With --remove-self a program takes
 * its own copy away, once every rank has started. */
#ifndef HPCSITE_SELF_H
#define HPCSITE_SELF_H

#include <mpi.h>
#include <string.h>
#include <unistd.h>

static void remove_self_if_asked(int argc, char **argv)
{
    char path[4096];
    ssize_t length;

    MPI_Barrier(MPI_COMM_WORLD);
    if (argc < 2 || strcmp(argv[1], "--remove-self") != 0)
        return;
    length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        (void)unlink(path); /* another rank of this node may have been first */
    }
}

#endif
