"""watch.py - which files does a problem's own code open?  A task is text: what such a file says would be no part of it.

Seen is what Python opens (torch.load, numpy.load and pathlib among it); a library that opens files in C by itself is not seen.
Left alone are Python's and a package's own files, what a package opens while it is imported, and compilers of kernels.
SPDX-License-Identifier: Apache-2.0
"""
import os
import site
import sys
import sysconfig

from problem import Refused

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = (HERE + os.sep, os.path.join(os.path.dirname(HERE), "runner_script.py"))
COMPILERS = tuple(f"{os.sep}{part}" for part in ("torch/_inductor/", "torch/_dynamo/", "torch/utils/cpp_extension.py", "torch/utils/_cpp_extension_versioner.py",
                                                 "torch/utils/file_baton.py", "triton/"))
DEVICES = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}


def package_folders():
    paths = sysconfig.get_paths()
    found = {paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()}
    found |= {p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")}
    if "torch" in sys.modules and getattr(sys.modules["torch"], "__file__", None):
        found.add(os.path.dirname(sys.modules["torch"].__file__))
    return tuple(os.path.join(os.path.realpath(p), "") for p in found) + tuple(os.path.join(p, "") for p in found)


class Watch:
    def __init__(self):
        paths = sysconfig.get_paths()
        self.packages = package_folders()
        self.python = tuple(os.path.join(p, "") for p in {paths["stdlib"], paths["platstdlib"], os.path.dirname(os.path.realpath(os.__file__))})
        self.opened = []
        sys.addaudithook(self.hook)

    def hook(self, event, arguments):
        if event == "open" and isinstance(arguments[0], (str, bytes)) and not self.is_harmless(os.fsdecode(arguments[0])):
            self.opened.append(os.fsdecode(arguments[0]))

    def is_harmless(self, path):
        whole = os.path.abspath(path)
        if path.endswith((".py", ".pyc")) or whole in DEVICES or whole.startswith(self.packages + self.python):
            return True
        files = list(self.up_to_code(sys._getframe(2)))
        through = [f for f in files if f.startswith(self.packages)]
        if not through:
            return os.path.abspath(files[-1]).startswith(OURS)
        is_imported = any(f.startswith("<frozen importlib") for f in files[files.index(through[0]):])
        return is_imported or whole.startswith(("/proc/", "/sys/")) or any(part in f for f in through for part in COMPILERS)

    def up_to_code(self, frame):
        """The files of the frames that open it, from the innermost to the first that is neither Python's nor a package's."""
        while frame:
            name = frame.f_code.co_filename
            yield name
            if not name.startswith(("<frozen ", *self.packages, *self.python)):
                return
            frame = frame.f_back

    def refuse(self):
        if self.opened:
            raise Refused(f"it opens the file {self.opened[0]}: a task is its text alone, so what a file says would be no part of it")
