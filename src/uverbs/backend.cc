// Which backend this process uses, and loading of the embedded one.
#include "uverbs/backend.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "uverbs/record.h"

namespace verbena::uverbs {
namespace {

constexpr std::uint32_t kPciVendorMellanox = 0x15b3;
constexpr char kNicLibrary[] = "libverbena-nic.so";

struct Choice {
  const Backend* backend = nullptr;
  int error = 0;
};

// libverbena-nic.so lies beside the library that holds this code (libibverbs.so.1).
Choice embedded() {
  std::string path;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&embedded), &self) && self.dli_fname) {
    path = self.dli_fname;
    path.erase(path.rfind('/') + 1);  // all of it without a slash: then the loader searches
  }
  // The device keeps threads and signal handlers of its own, so it is never unloaded.
  void* library = dlopen((path + kNicLibrary).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) library = dlopen(kNicLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return {nullptr, ENOENT};
  auto* entry = reinterpret_cast<decltype(&verbena_embedded_backend)>(dlsym(library, "verbena_embedded_backend"));
  if (!entry) return {nullptr, ELIBBAD};
  errno = 0;
  const Backend* backend = entry(kBackendAbi);
  if (!backend) return {nullptr, errno ? errno : ELIBBAD};
  return {backend, 0};
}

// Whether the process has a virtual node (src/preload).
bool has_virtual_node() {
  void* library = dlopen("libverbena-preload.so", RTLD_NOW | RTLD_NOLOAD);
  if (library) dlclose(library);
  return library != nullptr;
}

// What comes to a virtual node is recorded there.
Choice real_kernel(bool virtual_node) {
  if (virtual_node) return {&kernel_backend(), 0};
  return {&recorded(kernel_backend(), kTrustedMemory), 0};
}

bool kernel_has_mlx5() {
  const Backend& kernel = kernel_backend();
  int count = kernel.device_count();
  for (int index = 0; index < count; ++index) {
    DeviceInfo info{};
    if (kernel.device_info(index, &info)) continue;
    bool sub_function = std::strncmp(info.modalias, "auxiliary:mlx5_core.", 20) == 0;
    if (info.vendor_id == kPciVendorMellanox || sub_function) return true;
  }
  return false;
}

Choice choose() {
  // The emulated NIC is once in a process. Where there is a node it lies behind that, whichever way we were found.
  const bool virtual_node = has_virtual_node();
  const char* mode = std::getenv("VERBENA_MODE");
  if (mode && std::strcmp(mode, "kernel") == 0) return real_kernel(virtual_node);
  if (mode && std::strcmp(mode, "embedded") == 0) return virtual_node ? real_kernel(virtual_node) : embedded();
  if (mode && *mode && std::strcmp(mode, "auto") != 0) return {nullptr, EINVAL};
  return virtual_node || kernel_has_mlx5() ? real_kernel(virtual_node) : embedded();
}

}  // namespace

const Backend* backend() {
  static std::once_flag once;
  static Choice choice;
  std::call_once(once, [] { choice = choose(); });
  if (!choice.backend) errno = choice.error;
  return choice.backend;
}

}  // namespace verbena::uverbs
