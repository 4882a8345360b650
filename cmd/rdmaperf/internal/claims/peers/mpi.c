/*
 * mpi: a ping-pong of two ranks by MPI_Send and MPI_Recv, which prints the mean half
 * round trip in ns.
 *
 *   mpirun -n 2 mpi SIZE SECONDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* exchange is one round trip; a message of no bytes is the last. */
static int exchange(int rank, char *buf, int size, int last)
{
	MPI_Status status;
	int got;

	if (rank == 0) {
		MPI_Send(buf, last ? 0 : size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buf, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &status);
		return !last;
	}
	MPI_Recv(buf, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_CHAR, &got);
	MPI_Send(buf, got, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	return got > 0;
}

int main(int argc, char **argv)
{
	int rank, size = argc == 3 ? atoi(argv[1]) : 0;
	double seconds = argc == 3 ? atof(argv[2]) : 0, begin, now;
	long n = 0;
	char *buf;

	if (size < 1 || seconds <= 0) {
		fprintf(stderr, "usage: mpirun -n 2 mpi SIZE SECONDS\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	buf = calloc(1, (size_t)size);
	begin = MPI_Wtime();
	if (rank == 1) {
		while (exchange(rank, buf, size, 0))
			;
	} else {
		for (now = begin; now < begin + seconds * 0.1; now = MPI_Wtime()) /* a tenth is warm-up */
			exchange(rank, buf, size, 0);
		for (begin = now; now < begin + seconds; now = MPI_Wtime(), n++)
			exchange(rank, buf, size, 0);
		exchange(rank, buf, size, 1);
		printf("latency = %.1f ns\n", (now - begin) * 1e9 / (double)n / 2);
	}
	free(buf);
	return MPI_Finalize();
}
