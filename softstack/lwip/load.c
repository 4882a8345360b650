//go:build lwip

#define LW_LOAD_IMPLEMENTATION
#include <dlfcn.h>
#include <stdio.h>
#include "load.h"
#include "lw.h"

struct lw_calls lw_lib;

#ifdef LW_STATIC
// The library is in the program, by the same headers.
const char *lw_load(int *unlike)
{
	*unlike = 0;
#define X(f) lw_lib.f = &f;
	LW_CALLS(X)
#undef X
	return NULL;
}
#else

static const struct {
	const char *name;
	size_t at;
} names[] = {
#define X(f) {#f, offsetof(struct lw_calls, f)},
	LW_CALLS(X)
#undef X
};

const char *lw_load(int *unlike)
{
	static char why[256];
	void *lib = dlopen("liblwip.so.0", RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		snprintf(why, sizeof why, "%s", dlerror());
		return why;
	}
	const char *other = lw_unlike(lib);
	*unlike = other != NULL;
	if (other != NULL)
		return other;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *f = dlsym(lib, names[i].name);
		if (f == NULL) {
			snprintf(why, sizeof why, "liblwip.so.0 has no %s", names[i].name);
			return why;
		}
		*(void **)((char *)&lw_lib + names[i].at) = f;
	}
	return NULL;
}
#endif
