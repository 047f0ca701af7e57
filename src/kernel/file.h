// One open of a uverbs node: the user context, its objects, its memory map.
//
// Threads: ioctl() takes the File's lock for the whole request; the other members are for handlers, which run
// under it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kernel/node.h"
#include "kernel/object.h"
#include "uverbs/request.h"

namespace verbena::kernel {

// User context, as GET_CONTEXT made it.
struct UserContext {
  bool ready = false;
  std::uint16_t uid = 0;  // of DEVX objects; 0: none
  std::uint8_t cqe_version = 0;
  std::uint64_t lib_caps = 0;
  std::uint32_t lag_turn = 0;  // QPs that were given a port of the bond so far
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
  bool is(int fd) const;
  // A descriptor for the program; handed out once.
  int take_user_fd();
  // Lets go of a completion channel or event descriptor that is being closed.
  void forget_fd(int fd);
  // Destroys every object. Called once, when the last descriptor is closed.
  void release();
  // Number of the CQ behind a handle; false if there is none.
  bool cqn_of(std::uint32_t handle, std::uint32_t* cqn);
  // Runs the device on every QP whose send doorbell record advanced since the last call. Returns whether one had.
  bool ring_all();
  // The program has the rings of this queue and writes its records by hand. 0, or EINVAL if there is no such queue.
  int watch(std::uint16_t cls, std::uint32_t number);
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

  // Makes a completion channel; its descriptor or -1 with errno.
  int make_channel();
  // Makes an asynchronous event descriptor; the first one is the default of objects that name none.
  int make_async();
  // Null: none such (EBADF).
  std::shared_ptr<EventPipe> channel(int fd) const;
  std::shared_ptr<EventPipe> async(int fd) const;
  // The same for the channels of DEVX.
  int make_devx_events(bool omit_data);
  int make_devx_results();
  std::shared_ptr<DevxEventChannel> devx_events(int fd) const;
  std::shared_ptr<DevxResultChannel> devx_results(int fd) const;
  std::shared_ptr<EventPipe> default_async() const { return async_.empty() ? nullptr : async_.front(); }

  // Makes [offset, offset + 4096) of the file mappable; `writable` says by whom it may be written.
  void add_mapping(std::uint64_t offset, bool writable);
  void remove_mapping(std::uint64_t offset);
  // The same for the page of a UAR object, whose stores watched queues are told by.
  void add_uar(std::uint64_t offset);
  void remove_uar(std::uint64_t offset);
  // The next free offset of a UAR object.
  std::uint64_t new_uar_offset();
  // A new queue of DEVX: nothing but its records tells that the program gave it work.
  void watch_devx(std::uint32_t handle, std::uint32_t number);
  // Makes device memory mappable: its offset in the file and its index in the command of such offsets. False: no index left.
  bool add_device_memory(void* memory, std::size_t length, std::uint64_t* offset, std::uint16_t* index);
  // The same for the addresses of an operation, by the BAR address that the device gave them.
  bool add_operations(std::uint64_t bar, std::size_t length, std::uint64_t* offset, std::uint16_t* index);
  static std::uint16_t device_memory_index(std::uint64_t offset);
  // The next free offset of a VAR object.
  std::uint64_t new_virtio_offset();
  // Writes initial content into a mappable page.
  int fill_page(std::uint64_t offset, const void* data, std::size_t length);

 private:
  struct Mapping;
  void release_devx();
  bool add_at_index(Mapping mapping, std::uint64_t* offset, std::uint16_t* index);
  struct Mapping {
    std::uint64_t offset;
    bool writable;
    std::size_t length = 4096;
    void* memory = nullptr;  // what is mapped, if that is not a page of the file
    std::uint64_t bar = 0;   // or where in the BAR the operations are that are mapped
  };
  struct Watched {
    std::uint16_t cls;
    std::uint32_t handle, number;  // the number tells whether the handle still means the same queue
    bool armed_before = false;     // the look before found its record changed
    bool just_armed = false;       // CQ: that look or this one did, and its register has not been seen since
  };
  // Doorbell page of a UAR object; mapped by us when there are queues to watch.
  struct UarPage {
    std::uint64_t offset;
    std::uint64_t* words = nullptr;
  };
  struct Ring {
    bool send;
    std::uint32_t number;
  };
  void look_at_records(std::vector<Ring>* rings);
  void look_at_uars(std::vector<Ring>* rings);
  explicit File(std::shared_ptr<Node> node) : node_(std::move(node)) {}

  std::shared_ptr<Node> node_;
  int user_ = -1, memory_ = -1;
  dev_t dev_ = 0;
  ino_t ino_ = 0;
  std::mutex lock_;
  UserContext context_;
  HandleTable objects_;
  std::vector<std::shared_ptr<EventPipe>> channels_, async_;
  std::vector<std::shared_ptr<DevxEventChannel>> devx_events_;
  std::vector<std::shared_ptr<DevxResultChannel>> devx_results_;
  std::vector<Mapping> mappings_;
  std::vector<Watched> watched_;
  std::vector<UarPage> uars_;
  std::uint32_t next_uar_ = 0, next_memory_ = 0, next_virtio_ = 0;
  std::atomic<bool> watching_{false}, new_watch_{false}, dead_{false};
};

}  // namespace verbena::kernel
