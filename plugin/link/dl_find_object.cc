// SPDX-License-Identifier: Apache-2.0
//
// A `_dl_find_object` of our own, so that the plugin loads on glibc 2.34.
//
// libgcc's unwinder (linked in statically, from gcc 12 on) asks glibc's `_dl_find_object` for the
// unwind tables of the object that holds an address. That function exists from glibc 2.35 only, and
// a reference to it keeps the whole plugin from loading on RHEL 9 (2.34). This file answers the
// same question over dl_iterate_phdr, which is as old as the unwinder itself. It is hidden: it
// serves the libgcc inside this shared object and nobody else, and the reference leaves the
// dynamic symbols.
//
// Invariant: for every address within a loaded object that has a PT_GNU_EH_FRAME segment, the
// answer equals glibc's in the fields that libgcc reads (eh_frame, and eh_dbase where it exists);
// map_start and map_end are the bounds of the object's load segments, link_map is null.
// Threading: any thread; dl_iterate_phdr takes the loader's lock, so a throw costs a few
// microseconds more than with glibc's lock-free table. No data path throws. Ownership: none.
// What may fail: an address in no object, or in one without tables, gets -1, as from glibc.
//
// Where the C library knows no such function the unwinder does not ask for it either, and this file
// compiles to nothing.

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#ifdef DLFO_EH_SEGMENT_TYPE

namespace {

struct Query {
  std::uintptr_t address;
  dl_find_object* result;
  bool found;
};

#if DLFO_STRUCT_HAS_EH_DBASE
// The base of DW_EH_PE_datarel encodings: the object's global offset table. glibc has already
// relocated d_ptr in the dynamic section of the architectures that need this.
void* eh_data_base(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_PLTGOT) return reinterpret_cast<void*>(entry->d_un.d_ptr);
    }
  }
  return nullptr;
}
#endif

// Called once per loaded object; returns 1 to stop the walk.
int visit(dl_phdr_info* object, std::size_t, void* argument) {
  auto* query = static_cast<Query*>(argument);
  std::uintptr_t start = UINTPTR_MAX;
  std::uintptr_t end = 0;
  std::uintptr_t eh_frame = 0;
  bool inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t first = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      const std::uintptr_t last = first + segment.p_memsz;
      if (first < start) start = first;
      if (last > end) end = last;
      if (query->address >= first && query->address < last) inside = true;
    } else if (segment.p_type == DLFO_EH_SEGMENT_TYPE) {
      eh_frame = first;
    }
  }
  if (!inside) return 0;
  if (eh_frame == 0) return 1;  // the right object, but nothing to unwind with

  dl_find_object& result = *query->result;
  result = {};
  result.dlfo_map_start = reinterpret_cast<void*>(start);
  result.dlfo_map_end = reinterpret_cast<void*>(end);
  result.dlfo_eh_frame = reinterpret_cast<void*>(eh_frame);
#if DLFO_STRUCT_HAS_EH_DBASE
  result.dlfo_eh_dbase = eh_data_base(*object);
#endif
  query->found = true;
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(
    void* address, dl_find_object* result) noexcept {
  Query query{reinterpret_cast<std::uintptr_t>(address), result, false};
  dl_iterate_phdr(visit, &query);
  return query.found ? 0 : -1;
}

#endif  // DLFO_EH_SEGMENT_TYPE
