// A thread for programs that write WQEs, doorbell and arm records by hand: they make no call that could run the device,
// so somebody has to look at the records of those queues from time to time. It exists while there are such queues.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <vector>

#include "kernel/file.h"

namespace verbena::nic {

class Watcher {
 public:
  static Watcher& get();
  // `file` has watched queues now.
  void watch(const std::shared_ptr<kernel::File>& file);

 private:
  Watcher();
  static void* run(void* self);
  void loop();
  // Whether a queue had work; `*left` tells whether any file is still to be watched.
  bool look(bool* left);

  std::mutex lock_;
  std::vector<std::weak_ptr<kernel::File>> files_;
  pid_t runs_in_ = 0;  // a forked child has no such thread until it needs one itself
};

}  // namespace verbena::nic
