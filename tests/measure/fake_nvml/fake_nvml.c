/* A stand-in for libnvidia-ml.so.1, loaded through the real Python binding.
 *
 * What it answers is a script of rules, `[GPU.]KEY=VALUE` with `;` between them: from the environment variable
 * FAKE_NVML when it is loaded, and from fake_nvml_script() at any later time. A rule with a GPU's number beats one
 * without; a MIG instance of GPU k has number 100 + k. Keys:
 *
 *   nvmlDeviceGetPowerUsage=3      that function answers code 3 (nvml.h, nvmlReturn_t)
 *   nvmlDeviceGetPowerUsage.us=900 it takes 900 µs
 *   us=50                          every function does
 *   lost=1                         all that a GPU is asked answers 15, GPU is lost
 *   count, name, driver, mig, ecc, persistence, gpm (0: no, 1: yes, 2: says yes and fails)
 *   util, memutil, power_mw, temp, clock, reasons, gen, width, used_mib, gpm_share
 *   busy_ms, idle_ms               both set: util stands for the busy stretches, and it is 0 between them
 *   pids=4242,4243                 processes on the GPU, 1 MiB each times their place in the list
 *
 * It exports no setter. -DOLD builds a driver without the functions that came after R450.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int R;
typedef void *D;
typedef unsigned long long U64;

enum { RULES = 48, KEPT = 32, GPUS = 16, MIG0 = 100 };
typedef struct { char key[64]; char value[96]; int gpu; } Rule;
typedef struct { int n; Rule rules[RULES]; } Script;

/* A new script is written beside the one in use and then swapped in, so that no caller waits, in any thread or fork. */
static Script scripts[KEPT];
static _Atomic(Script *) now = &scripts[0];
static atomic_int n_scripts = 1, refs, after_loss, bad_handles, owner;
static U64 began_ns;
static atomic_int told_lost[GPUS];

typedef struct Count { const char *name; atomic_int n; struct Count *next; } Count;
static _Atomic(Count *) counts;

static U64 clock_ns(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void fake_nvml_script(const char *text) {
    Script *s = &scripts[atomic_fetch_add(&n_scripts, 1) % KEPT];
    s->n = 0;
    while (text && *text && s->n < RULES) {
        size_t all = strcspn(text, ";");
        Rule *r = &s->rules[s->n];
        char one[192];
        snprintf(one, sizeof one, "%.*s", (int)(all < 191 ? all : 191), text);
        char *equals = strchr(one, '='), *key = one, *after;
        if (equals) {
            *equals = 0;
            long gpu = strtol(one, &after, 10);
            r->gpu = -1;
            if (after != one && *after == '.') { r->gpu = (int)gpu; key = after + 1; }
            snprintf(r->key, sizeof r->key, "%.63s", key);
            snprintf(r->value, sizeof r->value, "%.95s", equals + 1);
            s->n++;
        }
        text += all + (text[all] == ';');
    }
    atomic_store(&now, s);
}

__attribute__((constructor)) static void load(void) { fake_nvml_script(getenv("FAKE_NVML")); began_ns = clock_ns(CLOCK_MONOTONIC); }

static const char *said(int gpu, const char *key) {
    Script *s = atomic_load(&now);
    const char *found = 0;
    for (int i = 0; i < s->n; i++)
        if ((s->rules[i].gpu == gpu || (s->rules[i].gpu < 0 && !found)) && !strcmp(s->rules[i].key, key)) found = s->rules[i].value;
    return found;
}
static long number(int gpu, const char *key, long otherwise) {
    const char *v = said(gpu, key);
    return v ? strtol(v, 0, 0) : otherwise;
}

int fake_nvml_count(const char *name) { /* calls of one function so far */
    for (Count *c = atomic_load(&counts); c; c = c->next) if (!strcmp(c->name, name)) return c->n;
    return 0;
}
int fake_nvml_asked_after_loss(void) { return after_loss; } /* calls with the handle of a GPU that was said to be lost */
int fake_nvml_bad_handles(void) { return bad_handles; }
int fake_nvml_open(void) { return refs; }
void fake_nvml_reset(void) { /* all as when it was loaded, but for the counts of calls */
    fake_nvml_script("");
    refs = after_loss = bad_handles = owner = 0;
    began_ns = clock_ns(CLOCK_MONOTONIC);
    memset(told_lost, 0, sizeof told_lost);
    for (Count *c = atomic_load(&counts); c; c = c->next) c->n = 0;
}
void fake_nvml_forget(void) { refs = 0; } /* as after a driver was unloaded: every call is code 1 until the next init */

/* What each function does first: count, be slow, fail. Drivers answer code 1 in a process forked from the one that opened them. */
static R enter(Count *c, int gpu, int needs_init) {
    if (!atomic_fetch_add(&c->n, 1)) {
        Count *first = atomic_load(&counts);
        for (Count *k = first; k; k = k->next) if (k == c) goto listed;
        do c->next = first; while (!atomic_compare_exchange_weak(&counts, &first, c));
    }
listed:;
    if (!atomic_load(&now)->n && !needs_init) return 0;
    char slow[80];
    snprintf(slow, sizeof slow, "%s.us", c->name);
    long us = number(gpu, slow, number(gpu, "us", 0));
    if (us) usleep(us);
    if (needs_init && (!refs || owner != getpid())) return 1;
    int k = gpu >= MIG0 ? gpu - MIG0 : gpu;
    int opens = !strncmp(c->name, "nvmlDeviceGetHandleBy", 21); /* asking for a handle is no use of one */
    if (gpu >= 0 && number(k, "lost", 0)) {
        if (opens) told_lost[k] = 0;
        else if (atomic_exchange(&told_lost[k], 1)) after_loss++;
        return 15;
    }
    if (gpu >= 0 && opens) told_lost[k] = 0;
    return (R)number(gpu, c->name, 0);
}
static int number_of(D d) {
    int k = (int)(size_t)d - 1;
    if ((k >= 0 && k < GPUS) || (k >= MIG0 && k < MIG0 + GPUS)) return k;
    bad_handles++;
    return -2;
}
#define SYSTEM(fn, needs_init) static Count count = {fn, 0, 0}; { R r = enter(&count, -1, needs_init); if (r) return r; }
#define GPU(fn, d) static Count count = {fn, 0, 0}; int k = number_of(d); if (k == -2) return 2; { R r = enter(&count, k, 1); if (r) return r; }
#define WHOLE_GPU if (k >= MIG0) return 3; /* not answered for a MIG instance */

static int busy_at(int k, U64 mono_ns) { /* utilization in percent at this moment */
    long busy = number(k, "busy_ms", 0), idle = number(k, "idle_ms", 0), util = number(k, "util", 37);
    if (!busy || !idle) return (int)util;
    return ((mono_ns - began_ns) / 1000000) % (U64)(busy + idle) < (U64)busy ? (int)util : 0;
}

static R init(void) {
    if (owner != getpid()) { owner = getpid(); refs = 0; }
    refs++;
    return 0;
}
R nvmlInit_v2(void) { SYSTEM("nvmlInit_v2", 0) return init(); }
R nvmlInitWithFlags(unsigned flags) { (void)flags; SYSTEM("nvmlInitWithFlags", 0) return init(); }
R nvmlShutdown(void) { SYSTEM("nvmlShutdown", 1) refs--; return 0; }
const char *nvmlErrorString(R r) { return r == 3 ? "Not Supported" : r == 15 ? "GPU is lost" : r == 0 ? "Success" : "Some Error"; }
R nvmlSystemGetDriverVersion(char *b, unsigned n) { SYSTEM("nvmlSystemGetDriverVersion", 1) const char *v = said(-1, "driver"); snprintf(b, n, "%s", v ? v : "580.00.01"); return 0; }
R nvmlSystemGetNVMLVersion(char *b, unsigned n) { SYSTEM("nvmlSystemGetNVMLVersion", 0) const char *v = said(-1, "driver"); snprintf(b, n, "13.%s", v ? v : "580.00.01"); return 0; }
R nvmlSystemGetCudaDriverVersion_v2(int *v) { SYSTEM("nvmlSystemGetCudaDriverVersion_v2", 0) *v = (int)number(-1, "cuda", 13000); return 0; }
R nvmlSystemGetCudaDriverVersion(int *v) { return nvmlSystemGetCudaDriverVersion_v2(v); }
R nvmlDeviceGetCount_v2(unsigned *n) { SYSTEM("nvmlDeviceGetCount_v2", 1) *n = (unsigned)number(-1, "count", 2); return 0; }
R nvmlDeviceGetHandleByIndex_v2(unsigned i, D *d) {
    if (i >= (unsigned)number(-1, "count", 2)) return 2;
    GPU("nvmlDeviceGetHandleByIndex_v2", (D)(size_t)(i + 1))
    (void)k; *d = (D)(size_t)(i + 1);
    return 0;
}
static void uuid_of(int k, char *b, unsigned n) {
    int gpu = k >= MIG0 ? k - MIG0 : k;
    snprintf(b, n, "%s-%x%x000000-0000-4000-8000-%012x", k >= MIG0 ? "MIG" : "GPU", 10 + gpu, 10 + gpu, k >= MIG0 ? 0x7000 + gpu : gpu);
}
R nvmlDeviceGetHandleByUUID(const char *uuid, D *d) {
    char one[96];
    for (int k = 0; k < MIG0 + GPUS; k = k + 1 == GPUS ? MIG0 : k + 1) {
        int gpu = k >= MIG0 ? k - MIG0 : k;
        uuid_of(k, one, sizeof one);
        if (gpu >= number(-1, "count", 2) || strcmp(one, uuid) || (k >= MIG0 && !number(gpu, "mig", 0))) continue;
        static Count count = {"nvmlDeviceGetHandleByUUID", 0, 0};
        R r = enter(&count, k, 1);
        if (!r) *d = (D)(size_t)(k + 1);
        return r;
    }
    return refs ? 6 : 1;
}
R nvmlDeviceGetUUID(D d, char *b, unsigned n) { GPU("nvmlDeviceGetUUID", d) uuid_of(k, b, n); return 0; }
R nvmlDeviceGetName(D d, char *b, unsigned n) { GPU("nvmlDeviceGetName", d) const char *v = said(k, "name"); snprintf(b, n, "%s", v ? v : "NVIDIA H100 80GB HBM3"); return 0; }
R nvmlDeviceGetIndex(D d, unsigned *i) { GPU("nvmlDeviceGetIndex", d) *i = k; return 0; }
R nvmlDeviceGetPersistenceMode(D d, unsigned *m) { GPU("nvmlDeviceGetPersistenceMode", d) *m = (unsigned)number(k, "persistence", 1); return 0; }
R nvmlDeviceGetEccMode(D d, unsigned *a, unsigned *b) { GPU("nvmlDeviceGetEccMode", d) *a = *b = (unsigned)number(k, "ecc", 1); return 0; }
R nvmlDeviceGetComputeMode(D d, unsigned *m) { GPU("nvmlDeviceGetComputeMode", d) *m = (unsigned)number(k, "compute_mode", 0); return 0; }
R nvmlDeviceGetMigMode(D d, unsigned *a, unsigned *b) { GPU("nvmlDeviceGetMigMode", d) WHOLE_GPU *a = *b = (unsigned)number(k, "mig", 0); return 0; }
R nvmlDeviceIsMigDeviceHandle(D d, unsigned *is) { GPU("nvmlDeviceIsMigDeviceHandle", d) *is = k >= MIG0; return 0; }
R nvmlDeviceGetCudaComputeCapability(D d, int *a, int *b) { GPU("nvmlDeviceGetCudaComputeCapability", d) long c = number(k, "capability", 90); *a = (int)c / 10; *b = (int)c % 10; return 0; }
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
R nvmlDeviceGetPciInfo_v3(D d, Pci *p) { GPU("nvmlDeviceGetPciInfo_v3", d) memset(p, 0, sizeof *p); p->bus = k + 1; snprintf(p->bus_id, 32, "00000000:%02X:00.0", k + 1); snprintf(p->legacy, 16, "0000:%02X:00.0", k + 1); return 0; }

typedef struct { unsigned gpu, memory; } Rates;
R nvmlDeviceGetUtilizationRates(D d, Rates *u) {
    GPU("nvmlDeviceGetUtilizationRates", d) WHOLE_GPU
    if (number(k, "mig", 0)) return 3;
    u->gpu = busy_at(k, clock_ns(CLOCK_MONOTONIC));
    u->memory = (unsigned)number(k, "memutil", 12);
    return 0;
}
typedef struct { U64 total, free, used; } Memory;
typedef struct { unsigned version; U64 total, reserved, free, used; } Memory2;
#define MIB 1048576ull
static U64 used_of(int k) { return number(k, "used_mib", 10240) * MIB; }
R nvmlDeviceGetMemoryInfo(D d, Memory *m) { GPU("nvmlDeviceGetMemoryInfo", d) m->total = 80 * 1024 * MIB; m->used = used_of(k) + 512 * MIB; m->free = m->total - m->used; return 0; }
R nvmlDeviceGetPowerUsage(D d, unsigned *p) { GPU("nvmlDeviceGetPowerUsage", d) WHOLE_GPU *p = (unsigned)number(k, "power_mw", 123456); return 0; }
R nvmlDeviceGetTotalEnergyConsumption(D d, U64 *e) { GPU("nvmlDeviceGetTotalEnergyConsumption", d) WHOLE_GPU *e = 5000000 + (clock_ns(CLOCK_MONOTONIC) - began_ns) / 1000 * number(k, "power_mw", 123456) / 1000000; return 0; }
R nvmlDeviceGetEnforcedPowerLimit(D d, unsigned *p) { GPU("nvmlDeviceGetEnforcedPowerLimit", d) WHOLE_GPU *p = (unsigned)number(k, "limit_mw", 700000); return 0; }
R nvmlDeviceGetPowerManagementLimit(D d, unsigned *p) { GPU("nvmlDeviceGetPowerManagementLimit", d) WHOLE_GPU *p = (unsigned)number(k, "limit_mw", 700000); return 0; }
R nvmlDeviceGetPowerManagementDefaultLimit(D d, unsigned *p) { GPU("nvmlDeviceGetPowerManagementDefaultLimit", d) WHOLE_GPU *p = 700000; return 0; }
R nvmlDeviceGetTemperature(D d, int sensor, unsigned *t) { GPU("nvmlDeviceGetTemperature", d) WHOLE_GPU (void)sensor; *t = (unsigned)number(k, "temp", 55); return 0; }
R nvmlDeviceGetClockInfo(D d, int which, unsigned *c) { GPU("nvmlDeviceGetClockInfo", d) WHOLE_GPU *c = which == 2 ? 2619 : (unsigned)number(k, "clock", 1410); return 0; }
R nvmlDeviceGetMaxClockInfo(D d, int which, unsigned *c) { GPU("nvmlDeviceGetMaxClockInfo", d) *c = which == 2 ? 2619 : 1980; return 0; }
R nvmlDeviceGetCurrentClocksThrottleReasons(D d, U64 *r) { GPU("nvmlDeviceGetCurrentClocksThrottleReasons", d) WHOLE_GPU *r = number(k, "reasons", 4); return 0; }
R nvmlDeviceGetCurrPcieLinkGeneration(D d, unsigned *g) { GPU("nvmlDeviceGetCurrPcieLinkGeneration", d) WHOLE_GPU *g = (unsigned)number(k, "gen", 5); return 0; }
R nvmlDeviceGetMaxPcieLinkGeneration(D d, unsigned *g) { GPU("nvmlDeviceGetMaxPcieLinkGeneration", d) WHOLE_GPU *g = 5; return 0; }
R nvmlDeviceGetGpuMaxPcieLinkGeneration(D d, unsigned *g) { GPU("nvmlDeviceGetGpuMaxPcieLinkGeneration", d) WHOLE_GPU *g = 5; return 0; }
R nvmlDeviceGetCurrPcieLinkWidth(D d, unsigned *g) { GPU("nvmlDeviceGetCurrPcieLinkWidth", d) WHOLE_GPU *g = (unsigned)number(k, "width", 16); return 0; }
R nvmlDeviceGetMaxPcieLinkWidth(D d, unsigned *g) { GPU("nvmlDeviceGetMaxPcieLinkWidth", d) WHOLE_GPU *g = 16; return 0; }
R nvmlDeviceGetPcieThroughput(D d, int which, unsigned *v) { GPU("nvmlDeviceGetPcieThroughput", d) usleep(20000); *v = which ? 1000 : 2000; return 0; }
R nvmlDeviceGetFanSpeed(D d, unsigned *v) { GPU("nvmlDeviceGetFanSpeed", d) *v = 30; return 0; }

/* The driver's own samples lie on a fixed grid, so that a caller who asks twice gets none twice. */
typedef union { double d; unsigned u; unsigned long ul; U64 ull; long long sll; } Value;
typedef struct { U64 us; Value v; } Sample;
enum { EVERY_US = 166667, RING = 100 };
R nvmlDeviceGetSamples(D d, int type, U64 last, int *value_type, unsigned *n, Sample *s) {
    GPU("nvmlDeviceGetSamples", d) WHOLE_GPU
    if (number(k, "mig", 0)) return 3;
    if (value_type) *value_type = 1;
    if (!s) { *n = RING; return 0; }
    U64 us = clock_ns(CLOCK_REALTIME) / 1000, mono_us = clock_ns(CLOCK_MONOTONIC) / 1000, newest = us / EVERY_US, oldest = newest - RING + 1;
    U64 first = last / EVERY_US + 1 > oldest ? last / EVERY_US + 1 : oldest;
    unsigned got = 0;
    for (U64 i = first; i <= newest && got < *n; i++, got++) {
        U64 ago = us - i * EVERY_US;
        s[got].us = i * EVERY_US;
        s[got].v.ull = 0;
        s[got].v.u = type == 2 ? 12 : busy_at(k, mono_us > ago + began_ns / 1000 ? (mono_us - ago) * 1000 : began_ns);
    }
    *n = got;
    return got ? 0 : 6;
}
typedef struct { unsigned id, scope; long long at, latency; int type; R answer; Value v; } Field;
R nvmlDeviceGetFieldValues(D d, int n, Field *f) {
    GPU("nvmlDeviceGetFieldValues", d) WHOLE_GPU
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof key, "field%u", f[i].id);
        f[i].answer = (R)number(k, key, 0);
        f[i].type = f[i].id == 186 ? 1 : 3; /* 186 is power in mW; the others here are counters in ns */
        f[i].v.ull = 0;
        if (f[i].id == 186) f[i].v.u = (unsigned)number(k, "power_mw", 123456);
        else if (f[i].id == 74) f[i].v.ull = (clock_ns(CLOCK_MONOTONIC) - began_ns) / 4; /* held for a quarter of the time */
    }
    return 0;
}
typedef struct { unsigned pid; U64 used; unsigned gi, ci; } Process;
static R processes(int k, unsigned *n, Process *p) {
    const char *list = said(k, "pids");
    unsigned all = 0, room = *n;
    for (const char *at = list; at && *at; all++) {
        if (p && all < room) { memset(p + all, 0, sizeof *p); p[all].pid = (unsigned)strtoul(at, 0, 10); p[all].used = (all + 1) * MIB; }
        at = strchr(at, ',');
        if (at) at++;
    }
    *n = all;
    return all > room || (all && !p) ? 7 : 0;
}
R nvmlDeviceGetComputeRunningProcesses_v3(D d, unsigned *n, Process *p) { GPU("nvmlDeviceGetComputeRunningProcesses_v3", d) return processes(k, n, p); }
R nvmlDeviceGetGraphicsRunningProcesses_v3(D d, unsigned *n, Process *p) { GPU("nvmlDeviceGetGraphicsRunningProcesses_v3", d) (void)p; *n = 0; return 0; }
R nvmlDeviceGetProcessUtilization(D d, void *u, unsigned *n, U64 last) { GPU("nvmlDeviceGetProcessUtilization", d) (void)u; (void)last; *n = 0; return 0; }

#ifndef OLD
R nvmlDeviceGetMemoryInfo_v2(D d, Memory2 *m) { GPU("nvmlDeviceGetMemoryInfo_v2", d) m->total = 80 * 1024 * MIB; m->reserved = 512 * MIB; m->used = used_of(k); m->free = m->total - m->used - m->reserved; return 0; }
R nvmlDeviceGetCurrentClocksEventReasons(D d, U64 *r) { GPU("nvmlDeviceGetCurrentClocksEventReasons", d) WHOLE_GPU *r = number(k, "reasons", 4); return 0; }
typedef struct { unsigned version, is; } Support;
R nvmlGpmQueryDeviceSupport(D d, Support *s) { GPU("nvmlGpmQueryDeviceSupport", d) s->is = number(k, "gpm", 1) != 0; return 0; }
R nvmlGpmSampleAlloc(void **p) { *p = calloc(1, 64); return 0; }
R nvmlGpmSampleFree(void *p) { free(p); return 0; }
static R gpm_sample(int k, void *p) {
    if (number(k, "gpm", 1) == 2) return 3;
    ((U64 *)p)[0] = clock_ns(CLOCK_MONOTONIC);
    ((U64 *)p)[1] = (U64)k;
    return 0;
}
R nvmlGpmSampleGet(D d, void *p) { GPU("nvmlGpmSampleGet", d) return gpm_sample(k, p); }
R nvmlGpmMigSampleGet(D d, unsigned gi, void *p) { GPU("nvmlGpmMigSampleGet", d) (void)gi; return gpm_sample(k, p); }
typedef struct { unsigned id; R answer; double value; struct { char *a, *b, *c; } info; } Metric;
typedef struct { unsigned version, n; void *one, *two; Metric metrics[1]; } Metrics;
R nvmlGpmMetricsGet(Metrics *g) {
    U64 *a = g->one, *b = g->two;
    int k = (int)b[1];
    static Count count = {"nvmlGpmMetricsGet", 0, 0};
    R r = enter(&count, k, 1);
    if (r) return r;
    for (unsigned i = 0; i < g->n; i++) {
        Metric *m = &g->metrics[i];
        char key[32];
        snprintf(key, sizeof key, "gpm%u", m->id);
        m->answer = (R)number(k, key, 0);
        /* Two samples less than 100 ms apart give nonsense on real cards. */
        m->value = b[0] - a[0] < 100000000ull ? 1e9 : m->id == 20 || m->id == 21 ? 100.0 : (double)number(k, "gpm_share", 10) + m->id;
    }
    return 0;
}
#endif
R nvmlDeviceGetDeviceHandleFromMigDeviceHandle(D d, D *parent) { GPU("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", d) if (k < MIG0) return 2; *parent = (D)(size_t)(k - MIG0 + 1); return 0; }
R nvmlDeviceGetGpuInstanceId(D d, unsigned *i) { GPU("nvmlDeviceGetGpuInstanceId", d) if (k < MIG0) return 2; *i = 7; return 0; }
