/* cuDNN convolution: what a user of an NVIDIA GPU calls.
 *
 * Activation and result are NHWC already.  cuDNN wants the filter as F R S C, the task holds it as R S C F and may
 * change it, so one cudnnTransformTensor into our own buffer is part of the timed call.  The algorithm is the fastest
 * of those that cuDNN itself measures while preparing; sums are float32.
 * This is the classic interface of cuDNN 9 (marked deprecated there, yet the one that needs no C++ front end); the
 * prototypes are written out here, so no vendor header is needed.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>

enum { NHWC = 1, CROSS_CORRELATION = 1, FLOAT = 0, TENSOR_OP_MATH = 1, FMA_MATH = 3 };
enum { STRIDE = 1, PAD = 1, DILATION = 1 };    // the task's constants
enum { ALGORITHMS_MAX = 16 };

typedef struct {    // cudnnConvolutionFwdAlgoPerf_t
    int    algorithm, status;
    float  time_ms;
    size_t memory_bytes;
    int    determinism, math_type, reserved[3];
} measured;

static struct {
    int (*create)(void **handle);
    size_t (*version)(void);
    int (*set_stream)(void *handle, void *stream);
    int (*create_tensor)(void **tensor);
    int (*create_filter)(void **filter);
    int (*create_convolution)(void **convolution);
    int (*set_tensor)(void *tensor, int type, int n, int c, int h, int w, int n_stride, int c_stride, int h_stride,
                      int w_stride);
    int (*set_filter)(void *filter, int type, int format, int k, int c, int h, int w);
    int (*set_convolution)(void *convolution, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                           int dilation_w, int mode, int compute_type);
    int (*set_math)(void *convolution, int math_type);
    int (*find)(void *handle, void *x, void *filter, void *convolution, void *y, int wanted, int *found,
                measured *results);
    int (*transform)(void *handle, const void *alpha, void *from, const void *x, const void *beta, void *to, void *y);
    int (*forward)(void *handle, const void *alpha, void *x_of, const void *x, void *filter_of, const void *filter,
                   void *convolution, int algorithm, void *workspace, size_t workspace_bytes, const void *beta,
                   void *y_of, void *y);
    int (*allocate)(void **pointer, size_t bytes);
    int (*release)(void *pointer);
} api;

static struct {
    void    *handle;
    void    *x, *y, *plain_weights, *packed_weights, *filter, *convolution;    // descriptors
    void    *weights, *workspace;                                             // device memory
    measured chosen;
    char     description[160];
} cudnn;

static const struct {
    const char *name;
    void       *slot;
} symbols[] = {
    {"cudnnCreate", &api.create},
    {"cudnnGetVersion", &api.version},
    {"cudnnSetStream", &api.set_stream},
    {"cudnnCreateTensorDescriptor", &api.create_tensor},
    {"cudnnCreateFilterDescriptor", &api.create_filter},
    {"cudnnCreateConvolutionDescriptor", &api.create_convolution},
    {"cudnnSetTensor4dDescriptorEx", &api.set_tensor},
    {"cudnnSetFilter4dDescriptor", &api.set_filter},
    {"cudnnSetConvolution2dDescriptor", &api.set_convolution},
    {"cudnnSetConvolutionMathType", &api.set_math},
    {"cudnnFindConvolutionForwardAlgorithm", &api.find},
    {"cudnnTransformTensor", &api.transform},
    {"cudnnConvolutionForward", &api.forward},
};

static int fail(char *why, size_t why_bytes, const char *what, int status)
{
    snprintf(why, why_bytes, "cuDNN: %s failed with status %d", what, status);
    return 1;
}

static int load(char *why, size_t why_bytes)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !driver) {
        snprintf(why, why_bytes, "cuDNN 9 or the CUDA driver is not installed: %s", dlerror());
        return 1;
    }
    for (size_t n = 0; n < sizeof symbols / sizeof *symbols; n++)
        if (!(*(void **)symbols[n].slot = dlsym(library, symbols[n].name))) {
            snprintf(why, why_bytes, "this cuDNN lacks %s", symbols[n].name);
            return 1;
        }
    *(void **)&api.allocate = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&api.release = dlsym(driver, "cuMemFree_v2");
    return api.allocate && api.release ? 0 : fail(why, why_bytes, "finding cuMemAlloc", -1);
}

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    if (load(why, why_bytes))
        return 1;
    int status = api.create(&cudnn.handle);
    void **tensors[] = {&cudnn.x, &cudnn.y, &cudnn.plain_weights, &cudnn.packed_weights};
    for (int n = 0; n < 4 && !status; n++)
        status = api.create_tensor(tensors[n]);
    status = status ? status : api.create_filter(&cudnn.filter);
    status = status ? status : api.create_convolution(&cudnn.convolution);
    *state = &cudnn;
    return status ? fail(why, why_bytes, "creating a handle and descriptors", status) : 0;
}

static int cudnn_type(int dtype)
{
    switch (dtype) {
    case KL_PLUGIN_F32:  return 0;
    case KL_PLUGIN_F16:  return 2;
    case KL_PLUGIN_BF16: return 9;
    default:             return -1;
    }
}

// cuDNN names dimensions N C H W, and F C R S of a filter, whatever the memory order.
static int describe(const kl_plugin_call *call, int type)
{
    int x[4], w[4], y[4];
    for (int n = 0; n < 4; n++) {
        x[n] = (int)call->tensors[0].dims[n];
        w[n] = (int)call->tensors[1].dims[n];
        y[n] = (int)call->tensors[2].dims[n];
    }
    const int rows = w[0], columns = w[1], channels = w[2], filters = w[3];
    int status = api.set_tensor(cudnn.x, type, x[0], x[3], x[1], x[2], x[1] * x[2] * x[3], 1, x[2] * x[3], x[3]);
    status = status ? status : api.set_tensor(cudnn.y, type, y[0], y[3], y[1], y[2], y[1] * y[2] * y[3], 1,
                                              y[2] * y[3], y[3]);
    status = status ? status : api.set_tensor(cudnn.plain_weights, type, filters, channels, rows, columns, 1, filters,
                                              columns * channels * filters, channels * filters);
    status = status ? status : api.set_tensor(cudnn.packed_weights, type, filters, channels, rows, columns,
                                              rows * columns * channels, 1, columns * channels, channels);
    status = status ? status : api.set_filter(cudnn.filter, type, NHWC, filters, channels, rows, columns);
    status = status ? status : api.set_convolution(cudnn.convolution, PAD, PAD, STRIDE, STRIDE, DILATION, DILATION,
                                                   CROSS_CORRELATION, FLOAT);
    // For float32 tensor cores would round the operands to TF32, which the default mathematics allows.
    return status ? status : api.set_math(cudnn.convolution, type == FLOAT ? FMA_MATH : TENSOR_OP_MATH);
}

// The fastest algorithm that works, by cuDNN's own measurement; results come fastest first.
static int choose(void)
{
    measured results[ALGORITHMS_MAX];
    int found = 0;
    int status = api.find(cudnn.handle, cudnn.x, cudnn.filter, cudnn.convolution, cudnn.y, ALGORITHMS_MAX, &found,
                          results);
    for (int n = 0; n < found && !status; n++)
        if (results[n].status == 0) {
            cudnn.chosen = results[n];
            return api.set_math(cudnn.convolution, results[n].math_type);
        }
    return status ? status : -1;
}

static int allocate(size_t weights_bytes)
{
    void **pointers[] = {&cudnn.weights, &cudnn.workspace};
    const size_t bytes[] = {weights_bytes, cudnn.chosen.memory_bytes};
    for (int n = 0; n < 2; n++) {
        int status = *pointers[n] ? api.release(*pointers[n]) : 0;
        *pointers[n] = NULL;
        if (!status && bytes[n])
            status = api.allocate(pointers[n], bytes[n]);
        if (status)
            return status;
    }
    return 0;
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    const int type = cudnn_type(call->tensors[0].dtype);
    const int64_t *w = call->tensors[1].dims;
    if (type < 0) {
        snprintf(why, why_bytes, "cuDNN does not take the data type of %s", call->tensors[0].name);
        return 1;
    }
    int status = api.set_stream(cudnn.handle, call->stream);
    status = status ? status : describe(call, type);
    if (status)
        return fail(why, why_bytes, "describing the tensors", status);
    if ((status = choose()))
        return fail(why, why_bytes, "finding an algorithm", status);
    if ((status = allocate((size_t)(w[0] * w[1] * w[2] * w[3]) * (type == FLOAT ? 4 : 2))))
        return fail(why, why_bytes, "allocating the filter and the workspace", status);
    const size_t version = api.version();    // 91300 is 9.13.0
    snprintf(cudnn.description, sizeof cudnn.description,
             "cuDNN %zu.%zu.%zu, forward algorithm %d, math type %d, alone %.1f us; filter transposed in the timed call",
             version / 10000, version / 100 % 100, version % 100, cudnn.chosen.algorithm, cudnn.chosen.math_type,
             (double)cudnn.chosen.time_ms * 1e3);
    status = kl_plugin_run(state, call);    // loads the kernels, which a capture must not do
    return status ? fail(why, why_bytes, "the convolution", status) : 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    static const float one = 1.0f, zero = 0.0f;
    int status = api.set_stream(cudnn.handle, call->stream);
    status = status ? status : api.transform(cudnn.handle, &one, cudnn.plain_weights, call->tensors[1].data, &zero,
                                             cudnn.packed_weights, cudnn.weights);
    return status ? status : api.forward(cudnn.handle, &one, cudnn.x, call->tensors[0].data, cudnn.filter,
                                         cudnn.weights, cudnn.convolution, cudnn.chosen.algorithm, cudnn.workspace,
                                         cudnn.chosen.memory_bytes, &zero, cudnn.y, call->tensors[2].data);
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return cudnn.description;
}
