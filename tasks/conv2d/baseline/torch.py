"""PyTorch's convolution on channels-last tensors, cuDNN choosing its algorithm by measurement.

NHWC memory is the channels_last format seen through a permuted view, so the activation and the result are not copied.
The HWCF filter is brought into channels_last form inside the timed call: it is an input, and may change.
SPDX-License-Identifier: Apache-2.0
"""
import torch

torch.backends.cudnn.benchmark = True


def run(x, weight):
    image = x.permute(0, 3, 1, 2)
    kernel = weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    y = torch.nn.functional.conv2d(image, kernel, stride=1, padding=1)
    return {"y": y.permute(0, 2, 3, 1).contiguous()}


def describe():
    return f"PyTorch {torch.__version__}, conv2d channels_last, cuDNN {torch.backends.cudnn.version()}"
