#define HOST 1
#include <klineage/plugin.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
static int (*copy)(unsigned long, unsigned long, size_t, void *);
int kl_plugin_open(void **s, char *why, size_t n)
{
    void *l = dlopen(getenv("KLINEAGE_LIBCUDA"), RTLD_NOW), *f;
    *s = NULL;
    f = l ? dlsym(l, "cuMemcpyDtoDAsync_v2") : NULL;
    memcpy(&copy, &f, sizeof f);
    if (!f) snprintf(why, n, "no library");
    return f == NULL;
}
int kl_plugin_prepare(void *s, const kl_plugin_call *c, char *why, size_t n)
{
    (void)s;
    if (c->n_tensors != 3 || c->tensors[0].dims[0] != 1000 || *(float *)c->tensors[1].data != 2.5f) {
        snprintf(why, n, "bad call");
        return 1;
    }
    return 0;
}
int kl_plugin_run(void *s, const kl_plugin_call *c)
{
    (void)s;
    if (HOST) return memcpy(c->tensors[2].data, c->tensors[0].data, 4000) == NULL;
    return copy((unsigned long)c->tensors[2].data, (unsigned long)c->tensors[0].data, 4000, c->stream);
}
const char *kl_plugin_describe(void *s) { (void)s; return "copies 1.0"; }
