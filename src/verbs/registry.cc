// Providers and the device list.
//
// The provider libmlx5.so.1 is looked for beside this library when the list is first made; a program that links it
// has registered it already. Devices live as long as they are present or somebody refers to them.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "verbs/internal.h"

#undef ibv_get_device_list

namespace verbena::verbs {
namespace {

// Constant-initialized: a provider's constructor may run before any of ours.
constinit std::mutex providers_lock;
constinit const Provider* providers[8] = {};

constinit std::mutex devices_lock;
std::vector<Device*>& devices() {
  static auto* list = new std::vector<Device*>;  // never destroyed: contexts may outlive static destruction
  return *list;
}

void load_provider() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&load_provider), &self) && self.dli_fname) {
    std::string path = self.dli_fname;
    path.erase(path.rfind('/') + 1);  // all of it without a slash: then the loader searches
    path += "libmlx5.so.1";
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE)) return;
  }
  dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NODELETE);
}

const Provider* provider_for(const uverbs::DeviceInfo& info) {
  std::lock_guard guard(providers_lock);
  for (const Provider* provider : providers)
    if (provider && provider->match(info)) return provider;
  return nullptr;
}

template <std::size_t N, std::size_t M>
void copy_name(char (&to)[N], const char (&from)[M]) {
  std::size_t length = strnlen(from, M < N ? M : N - 1);
  std::memcpy(to, from, length);
  to[length] = '\0';
}

Device* make_device(const uverbs::Backend& backend, const uverbs::DeviceInfo& info) {
  const Provider* provider = provider_for(info);
  if (!provider) return nullptr;
  Device* device = provider->alloc_device(info);
  if (!device) return nullptr;
  std::memset(&device->device, 0, sizeof device->device);
  device->device.node_type = static_cast<ibv_node_type>(info.node_type);
  device->device.transport_type = IBV_TRANSPORT_IB;
  copy_name(device->device.name, info.ibdev_name);
  copy_name(device->device.dev_name, info.uverbs_name);
  copy_name(device->device.dev_path, info.uverbs_path);
  copy_name(device->device.ibdev_path, info.ibdev_path);
  device->provider = provider;
  device->backend = &backend;
  device->info = info;
  device->core_support = 0;
  device->references = 1;
  return device;
}

bool same_device(const uverbs::DeviceInfo& a, const uverbs::DeviceInfo& b) {
  return std::strcmp(a.ibdev_name, b.ibdev_name) == 0 && std::strcmp(a.uverbs_name, b.uverbs_name) == 0 &&
         a.node_guid_be == b.node_guid_be;
}

// Brings `list` up to date with the backend: known devices are kept, gone ones released. 0 or an errno.
int refresh(const uverbs::Backend& backend, std::vector<Device*>& list) {
  int count = backend.device_count();
  if (count < 0) return -count;
  std::vector<Device*> now;
  for (int index = 0; index < count; ++index) {
    uverbs::DeviceInfo info{};
    if (backend.device_info(index, &info)) continue;  // it vanished meanwhile
    Device* device = nullptr;
    for (Device*& known : list) {
      if (known && same_device(known->info, info)) {
        device = known;
        known = nullptr;
        break;
      }
    }
    if (!device) device = make_device(backend, info);
    if (!device) continue;
    device->backend_index = index;
    now.push_back(device);
  }
  for (Device* gone : list)
    if (gone) put(*gone);
  list = std::move(now);
  return 0;
}

}  // namespace

void hold(Device& device) { device.references.fetch_add(1, std::memory_order_relaxed); }

void put(Device& device) {
  if (device.references.fetch_sub(1, std::memory_order_acq_rel) == 1) device.provider->free_device(&device);
}

}  // namespace verbena::verbs

using namespace verbena::verbs;

void verbena_register_provider(const Provider* provider) {
  if (provider->abi != kDriverAbi) return;
  std::lock_guard guard(providers_lock);
  for (const Provider*& slot : providers) {
    if (slot == provider) return;
    if (!slot) {
      slot = provider;
      return;
    }
  }
}

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (count) *count = 0;
  const verbena::uverbs::Backend* backend = verbena::uverbs::backend();
  if (!backend) return refuse<ibv_device*>(ENOSYS);
  static std::once_flag loaded;
  std::call_once(loaded, load_provider);

  std::lock_guard guard(devices_lock);
  if (int error = refresh(*backend, devices())) return refuse<ibv_device*>(error);
  auto** list = static_cast<ibv_device**>(std::calloc(devices().size() + 1, sizeof(ibv_device*)));
  if (!list) return refuse<ibv_device*>(ENOMEM);
  std::size_t n = 0;
  for (Device* device : devices()) {
    hold(*device);
    list[n++] = &device->device;
  }
  if (count) *count = static_cast<int>(n);
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  for (ibv_device** entry = list; *entry; ++entry) put(*device_of(*entry));
  std::free(list);
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

__be64 ibv_get_device_guid(ibv_device* device) { return device_of(device)->info.node_guid_be; }

int ibv_get_device_index(ibv_device* device) { return device_of(device)->info.index; }

}  // extern "C"
