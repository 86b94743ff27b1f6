"""Names the wheel after the C library that its programs were built with.  SPDX-License-Identifier: Apache-2.0"""
import platform

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformWheel(BuildHookInterface):
    def initialize(self, _version, build_data):
        glibc = platform.libc_ver()[1].replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{glibc}_{platform.machine()}"
