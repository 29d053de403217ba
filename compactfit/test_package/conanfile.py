# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What Conan builds and runs to see whether the package is one: the C++ example."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TestCompactfit(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # nothing beside the build's folder
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="../examples/cpp")
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(str(Path(self.build_folder) / "sessions"), env="conanrun")
