// SPDX-License-Identifier: Apache-2.0
// libstdc++ sets 72 KB aside when it is loaded, for exceptions thrown when there is no memory, and
// never gives them back: harmless in a program, but the copy in this library comes and goes with
// it, and NCCL unloads plugins. libstdc++ has a function that gives them back (for leak checkers;
// GCC bug 66339); called when the library is unloaded, after all that might throw.
namespace __gnu_cxx {
void __freeres() noexcept;
}

namespace {

// The first destructor to be registered is the last to run.
__attribute__((destructor(101))) void give_back_the_emergency_pool() { __gnu_cxx::__freeres(); }

}  // namespace
