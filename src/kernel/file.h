// One open of a uverbs node: the user context, its objects, its memory map.
//
// Threads: ioctl() takes the File's lock for the whole request; the other members are for handlers, which run
// under it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel/descriptors.h"
#include "kernel/node.h"
#include "kernel/object.h"
#include "kernel/watch.h"
#include "uverbs/request.h"

namespace verbena::kernel {

// User context, as GET_CONTEXT made it.
struct UserContext {
  bool ready = false;
  std::uint16_t uid = 0;  // of DEVX objects; 0: none
  std::uint8_t cqe_version = 0;
  std::uint64_t lib_caps = 0;
  std::optional<std::uint32_t> transport_domain;  // of raw packet queues; none until there are some
  std::uint32_t lag_turn = 0;  // QPs that were given a port of the bond so far
};

struct DevxObject;

// The page of a UAR object that is gone while queues still name it.
struct RetiredUar {
  std::uint64_t offset;
  std::uint32_t page;
};

class File {
 public:
  // Null with errno set.
  static std::shared_ptr<File> open(std::shared_ptr<Node> node);
  // After fork, in the child: the same descriptors and user context over an attachment of the child's own. The parent's
  // objects are not in it, and its handles are none of theirs.
  static std::shared_ptr<File> inherit(std::shared_ptr<Node> node, const File& parents);
  ~File();

  // 0 or an errno.
  int ioctl(ib_uverbs_ioctl_hdr* request);
  // As mmap(2); MAP_FAILED and errno.
  void* mmap(void* addr, std::size_t length, int prot, int flags, std::int64_t offset);
  // Whether `fd` is this open file (a dup of it counts).
  bool is(int fd) const { return is(file_id(fd)); }
  bool is(const FileId& id) const { return id == id_; }
  // A descriptor for the program; handed out once.
  int take_user_fd();
  // Lets go of a completion channel or event descriptor that is being closed.
  void forget_fd(int fd);
  // Destroys every object. Called once, when the last descriptor is closed.
  void release();
  // Number of the CQ behind a handle; false if there is none.
  bool cqn_of(std::uint32_t handle, std::uint32_t* cqn);
  // The program has the rings of this queue and writes its records by hand. 0, or an errno if there is no such queue.
  int watch(std::uint16_t cls, std::uint32_t handle);
  bool watching() const { return watching_.load(std::memory_order_acquire) && !dead(); }
  // Runs the device on every watched queue whose doorbell or arm record changed. Returns whether one had.
  bool serve_watched();
  // Whether a request made a queue to be watched since the last call.
  bool take_new_watch() { return new_watch_.exchange(false, std::memory_order_acq_rel); }
  void mark_dead() { dead_.store(true, std::memory_order_release); }
  bool dead() const { return dead_.load(std::memory_order_acquire) || node_->dead(); }

  // ---- for handlers ----
  Node& node() { return *node_; }
  const std::shared_ptr<Node>& shared_node() const { return node_; }
  device::Device& device() { return node_->device(); }
  UserContext& context() { return context_; }
  HandleTable& objects() { return objects_; }
  template <class T>
  T* find(std::uint32_t handle, std::uint16_t cls, int* error) const {
    return static_cast<T*>(objects_.find(handle, cls, error));
  }
  // Destroys an object and frees its handle. EBUSY while others stand on it.
  int destroy(Object* object);
  // Frees the handle of an object that is destroyed.
  void remove(Object* object);

  // The user context is there: it and its objects are published from now on.
  void start_tracking();

  // Makes a completion channel; its descriptor or -1 with errno.
  int make_channel();
  // Makes an asynchronous event descriptor; the first one is the default of objects that name none.
  int make_async();
  // Null: none such (EBADF).
  std::shared_ptr<EventPipe> channel(int fd) const { return channels_.find(fd); }
  std::shared_ptr<EventPipe> async(int fd) const { return async_.find(fd); }
  // The same for the channels of DEVX.
  int make_devx_events(bool omit_data);
  int make_devx_results();
  std::shared_ptr<DevxEventChannel> devx_events(int fd) const { return devx_events_.find(fd); }
  std::shared_ptr<DevxResultChannel> devx_results(int fd) const { return devx_results_.find(fd); }
  const std::shared_ptr<EventPipe>& default_async() const { return default_async_; }

  // Makes [offset, offset + 4096) of the file mappable; `writable` says by whom it may be written.
  void add_mapping(std::uint64_t offset, bool writable);
  void remove_mapping(std::uint64_t offset);
  // The same for the page of the device's clock, at the place that it has.
  void add_clock();
  // The same for the page of a UAR object, whose stores watched queues are told by; here and below: at an offset that is
  // free, false if none is.
  bool add_uar(std::uint64_t* offset);
  void remove_uar(std::uint64_t offset);
  // Its object is gone, but the device does not take the page back: rung as before, mapped by nobody any more.
  void retire_uar(std::uint64_t offset, std::uint32_t page);
  std::vector<RetiredUar>& retired_uars() { return retired_uars_; }
  // The same for the page of a VAR object.
  bool add_virtio(std::uint64_t* offset);
  // A new queue of DEVX: nothing but its records tells that the program gave it work.
  void watch_devx(DevxObject& object);
  // A queue was told to change its state: its record is looked at anew, if it is watched.
  void queue_modified(const Object& object) { watched_.look_again(object); }
  // Where UMEMs lie, by number.
  std::unordered_map<std::uint32_t, std::uint64_t>& umems() { return umems_; }
  // Makes device memory mappable.
  bool add_device_memory(void* memory, std::size_t length, std::uint64_t* offset);
  // The same for the addresses of an operation, by the BAR address that the device gave them.
  bool add_operations(std::uint64_t bar, std::size_t length, std::uint64_t* offset);
  // The index of such an offset, as programs are told it.
  static std::uint16_t device_memory_index(std::uint64_t offset);
  // Writes initial content into a mappable page.
  int fill_page(std::uint64_t offset, const void* data, std::size_t length);

 private:
  struct Mapping {
    bool writable;
    std::size_t length = 4096;
    void* memory = nullptr;  // what is mapped, if that is not a page of the file
    std::uint64_t bar = 0;   // or where in the BAR the operations are that are mapped
    bool clock = false;      // or the device's clock
    bool retired = false;    // nobody can map it any more
  };
  void release_devx();
  bool add_at_index(std::uint64_t command, const Mapping& mapping, std::uint16_t& next, std::uint64_t* offset);
  void look_at_uars(std::vector<WatchList::Ring>* rings, std::vector<std::uint64_t>* doorbells);
  explicit File(std::shared_ptr<Node> node) : node_(std::move(node)) {}

  std::shared_ptr<Node> node_;
  int user_ = -1, memory_ = -1;
  FileId id_;
  std::mutex lock_;
  UserContext context_;
  HandleTable objects_;
  device::TrackRecord* track_record_ = nullptr;
  Descriptors<EventPipe> channels_, async_;
  std::shared_ptr<EventPipe> default_async_;
  Descriptors<DevxEventChannel> devx_events_;
  Descriptors<DevxResultChannel> devx_results_;
  std::unordered_map<std::uint64_t, Mapping> mappings_;      // by offset
  std::unordered_map<std::uint64_t, std::uint64_t*> uars_;   // by offset; null until there are queues to watch
  std::vector<RetiredUar> retired_uars_;
  std::unordered_map<std::uint32_t, std::uint64_t> umems_;
  std::uint16_t next_uar_ = 0, next_memory_ = 0, next_virtio_ = 0;
  WatchList watched_;
  std::atomic<bool> watching_{false}, new_watch_{false}, dead_{false};
};

// Gives back what nothing names any more of the retired UAR pages; how many those were (uar.cc).
unsigned give_back_uars(File& file);

}  // namespace verbena::kernel
