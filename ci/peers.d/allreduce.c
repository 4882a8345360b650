// MPI_Allreduce beside the workload allreduce of rdmaperf: the same loop, the same
// numbers, the same clock, buffers that are mapped and unmapped in each iteration or
// stay. Prints one line a size: bytes, buffers, iterations, and the p50 and mean of the
// slowest rank of each iteration in ns.
//
// Usage: mpirun … allreduce WINDOW_MS SIZE…
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WARMUP = 2, PROBES = 3, PART = 8, LEAST = 5, MOST = 20000, PERIOD = 1024, PAGE = 4096 };

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static float *take(size_t n) {
	float *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (n >= 2 << 20) // as rdmaperf's base pages
		madvise(p, n, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i += PAGE)
		((char *)p)[i] = 1;
	return p;
}

static int rank, ranks;

// loop takes n iterations behind a warm-up, puts their times into ns, and says how long they
// took the slowest rank.
static long long loop(size_t bytes, int fresh, int n, long long *ns) {
	float *in = NULL, *out = NULL;
	long long began = 0, most;
	size_t count = bytes / sizeof(float);
	if (!fresh) {
		in = take(bytes);
		out = take(bytes);
	}
	for (int i = 0; i < WARMUP + n; i++) {
		long long t = now(), map, unmap = 0;
		if (i == WARMUP)
			began = t;
		if (fresh) {
			in = take(bytes);
			out = take(bytes);
		}
		map = fresh ? now() - t : 0;
		for (size_t k = 0; k < count; k++)
			in[k] = (float)(((k + i) & (PERIOD - 1)) + rank);
		MPI_Barrier(MPI_COMM_WORLD);
		t = now();
		MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		t = now() - t;
		for (size_t k = 0; k < count; k++) {
			if (out[k] != (float)(ranks * ((k + i) & (PERIOD - 1)) + ranks * (ranks - 1) / 2)) {
				fprintf(stderr, "allreduce: wrong sum at %zu\n", k);
				MPI_Abort(MPI_COMM_WORLD, 4);
			}
		}
		if (fresh) {
			unmap = now();
			munmap(in, bytes);
			munmap(out, bytes);
			unmap = now() - unmap;
		}
		if (i >= WARMUP) {
			ns[3 * (i - WARMUP)] = map;
			ns[3 * (i - WARMUP) + 1] = t;
			ns[3 * (i - WARMUP) + 2] = unmap;
		}
	}
	began = now() - began;
	MPI_Allreduce(&began, &most, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
	if (!fresh) {
		munmap(in, bytes);
		munmap(out, bytes);
	}
	return most;
}

static int rising(const void *a, const void *b) {
	long long x = *(const long long *)a, y = *(const long long *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 3) {
		fprintf(stderr, "usage: allreduce WINDOW_MS SIZE...\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	long long window = atoll(argv[1]) * 1000000;
	long long *ns = malloc(3 * MOST * sizeof *ns), *worst = malloc(3 * MOST * sizeof *worst), *sum = malloc(MOST * sizeof *sum);
	for (int a = 2; a < argc; a++) {
		size_t bytes = strtoull(argv[a], NULL, 10);
		for (int fresh = 1; fresh >= 0; fresh--) {
			long long n = PROBES;
			for (int part = PART; part >= 1; part /= PART) { // as rdmaperf: a part of the window tells
				long long took = loop(bytes, fresh, (int)n, ns);
				n = (long long)((double)(window / part) * n / (took > 0 ? took : 1));
				n = n < LEAST ? LEAST : n > MOST ? MOST : n;
			}
			loop(bytes, fresh, (int)n, ns);
			MPI_Allreduce(ns, worst, (int)(3 * n), MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
			double mean = 0;
			for (int i = 0; i < n; i++) {
				sum[i] = worst[3 * i] + worst[3 * i + 1] + worst[3 * i + 2];
				mean += sum[i];
			}
			qsort(sum, n, sizeof *sum, rising);
			if (rank == 0)
				printf("%zu %s %lld %lld %.0f\n", bytes, fresh ? "fresh" : "reused", n, sum[(n + 1) / 2 - 1], mean / n);
		}
	}
	MPI_Finalize();
	return 0;
}
