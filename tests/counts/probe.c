/* Counts what Python allocates, and what callgrind counts. Loaded by probe.py; nothing else belongs here. */
#include <Python.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_DUMP_STATS
#define RUNNING_ON_VALGRIND 0
#endif

static PyMemAllocatorEx below[3];
static long allocations;

static void *probe_malloc(void *ctx, size_t size) {
    PyMemAllocatorEx *real = ctx;
    allocations++;
    return real->malloc(real->ctx, size);
}

static void *probe_calloc(void *ctx, size_t count, size_t size) {
    PyMemAllocatorEx *real = ctx;
    allocations++;
    return real->calloc(real->ctx, count, size);
}

static void *probe_realloc(void *ctx, void *block, size_t size) {
    PyMemAllocatorEx *real = ctx;
    allocations++;
    return real->realloc(real->ctx, block, size);
}

static void probe_free(void *ctx, void *block) {
    PyMemAllocatorEx *real = ctx;
    real->free(real->ctx, block);
}

/* The raw domain is left alone: other threads may be in it. */
void probe_install(void) {
    for (int domain = PYMEM_DOMAIN_MEM; domain <= PYMEM_DOMAIN_OBJ; domain++) {
        PyMem_GetAllocator(domain, &below[domain]);
        PyMemAllocatorEx probe = {&below[domain], probe_malloc, probe_calloc, probe_realloc, probe_free};
        PyMem_SetAllocator(domain, &probe);
    }
}

void probe_remove(void) {
    for (int domain = PYMEM_DOMAIN_MEM; domain <= PYMEM_DOMAIN_OBJ; domain++)
        PyMem_SetAllocator(domain, &below[domain]);
}

long probe_allocations(void) { return allocations; }

/* What runs before this runs many times faster: callgrind need not look at it. */
void probe_instrument(void) { CALLGRIND_START_INSTRUMENTATION; }

void probe_collect(void) {
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
}

/* Writes a file with what was collected. */
void probe_dump(void) {
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS;
}

int probe_on_valgrind(void) { return RUNNING_ON_VALGRIND; }
