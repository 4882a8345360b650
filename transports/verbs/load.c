//go:build cgo && linux

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"

#ifdef M_ARENA_MAX
// one_heap is for all threads: what this package allocates for a QP lies next to what the
// provider does, whichever of Go's threads asks for it. It must come before the first of
// them, which has allocated something; no other part of the program has use for several.
__attribute__((constructor)) static void one_heap(void) { mallopt(M_ARENA_MAX, 1); }
#endif

// A symbol is asked for with its version: libibverbs still exports the 1.0 ones,
// with other structures, under the same names.
struct symbol {
	void **at;
	const char *name, *version;
};

struct vb_verbs_lib vb_verbs;
struct vb_cm_lib vb_cm;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

#define V(member, version) {(void **)&vb_verbs.member, "ibv_" #member, "IBVERBS_" version}
static const struct symbol verbs_symbols[] = {
	V(get_device_list, "1.1"), V(free_device_list, "1.1"), V(open_device, "1.1"), V(close_device, "1.1"),
	V(query_device, "1.1"), V(query_port, "1.1"), V(get_async_event, "1.1"), V(ack_async_event, "1.1"),
	V(alloc_pd, "1.1"), V(dealloc_pd, "1.1"), V(reg_mr, "1.1"), V(dereg_mr, "1.1"),
	V(create_comp_channel, "1.0"), V(destroy_comp_channel, "1.0"), V(create_cq, "1.1"), V(destroy_cq, "1.1"),
	V(get_cq_event, "1.1"), V(ack_cq_events, "1.1"), V(create_srq, "1.1"), V(modify_srq, "1.1"), V(destroy_srq, "1.1"),
	V(create_qp, "1.1"), V(query_qp, "1.1"), V(modify_qp, "1.1"), V(destroy_qp, "1.1"),
};

#define C(member, version) {(void **)&vb_cm.member, "rdma_" #member, "RDMACM_" version}
static const struct symbol cm_symbols[] = {
	C(create_event_channel, "1.0"), C(destroy_event_channel, "1.0"), C(create_id, "1.0"), C(destroy_id, "1.0"),
	C(bind_addr, "1.0"), C(listen, "1.0"), C(resolve_addr, "1.0"), C(resolve_route, "1.0"), C(connect, "1.0"),
	C(accept, "1.0"), C(reject, "1.0"), C(disconnect, "1.0"), C(get_cm_event, "1.0"), C(ack_cm_event, "1.0"),
	C(set_option, "1.0"), C(init_qp_attr, "1.2"), C(establish, "1.2"),
};

static const char *load(const char *library, const struct symbol *table, size_t n, int *done, char *why, int len) {
	const char *missing = NULL;

	pthread_mutex_lock(&loading);
	if (!*done) {
		void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		const char *text = NULL;
		if (!lib) {
			missing = library;
			text = dlerror();
		}
		for (size_t i = 0; lib && !missing && i < n; i++) {
			*table[i].at = dlvsym(lib, table[i].name, table[i].version);
			if (!*table[i].at) {
				missing = table[i].name;
				text = dlerror();
			}
		}
		if (lib && table == verbs_symbols)
			vb_verbs.query_gid_table = dlvsym(lib, "_ibv_query_gid_table", "IBVERBS_1.11");
		if (missing)
			snprintf(why, len, "%s", text ? text : "no reason given");
		*done = !missing;
		// The library stays open: its providers keep threads and fork handlers.
	}
	pthread_mutex_unlock(&loading);
	return missing;
}

const char *vb_load_verbs(char *why, int len) {
	static int done;
	vb_clock_start();
	return load("libibverbs.so.1", verbs_symbols, sizeof verbs_symbols / sizeof *verbs_symbols, &done, why, len);
}

const char *vb_load_cm(char *why, int len) {
	static int done;
	return load("librdmacm.so.1", cm_symbols, sizeof cm_symbols / sizeof *cm_symbols, &done, why, len);
}

int vb_nonblock(int fd) {
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}
