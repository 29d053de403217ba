# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The library as a package for Conan 2: `conan create compactfit`."""

import shutil
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Compactfit(ConanFile):
    name = "compactfit"
    version = "0.1.0"
    description = "Compacting allocator with bounded time and bounded fragmentation"
    license = "GPL-2.0-only OR MIT"
    topics = ("allocator", "memory", "real-time", "embedded")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}  # noqa: RUF012
    default_options = {"shared": False, "fPIC": True}  # noqa: RUF012
    implements = ["auto_shared_fpic"]  # noqa: RUF012
    languages = "C"

    def export_sources(self):
        folder = Path(self.recipe_folder)
        for pattern in (
            *("CMakeLists.txt", "amalgamate.cmake", "compactfit.pc.in", "README.md"),
            *("src/*", "include/*", "examples/*"),
        ):
            copy(self, pattern, folder, self.export_sources_folder)
        for licence in folder.glob("LICENSE-*"):  # links to the repository's
            shutil.copyfile(licence, Path(self.export_sources_folder) / licence.name)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BUILD_TESTING"] = False
        toolchain.cache_variables["CF_TOOLS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE-*", self.source_folder, Path(self.package_folder) / "licenses")

    def package_info(self):
        self.cpp_info.libs = ["compactfit"]
        self.cpp_info.set_property("cmake_file_name", "compactfit")
        self.cpp_info.set_property("cmake_target_name", "compactfit::compactfit")
        self.cpp_info.set_property("pkg_config_name", "compactfit")
