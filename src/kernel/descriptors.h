// Files that a program reads from, found by any descriptor of theirs.
// Threads: under the File's lock.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <utility>

namespace verbena::kernel {

// What the descriptors of one file have in common.
using FileId = std::pair<dev_t, ino_t>;

// {0, 0}: not a descriptor.
inline FileId file_id(int fd) {
  struct stat st {};
  return fd >= 0 && !fstat(fd, &st) ? FileId{st.st_dev, st.st_ino} : FileId{};
}

template <class T>
class Descriptors {
 public:
  void add(std::shared_ptr<T> file) { files_.emplace(file->id(), std::move(file)); }
  // Null: none such.
  std::shared_ptr<T> find(const FileId& id) const {
    const auto it = files_.find(id);
    return it == files_.end() ? nullptr : it->second;
  }
  std::shared_ptr<T> find(int fd) const { return find(file_id(fd)); }
  void remove(const FileId& id) { files_.erase(id); }
  auto begin() const { return files_.begin(); }
  auto end() const { return files_.end(); }

 private:
  std::map<FileId, std::shared_ptr<T>> files_;
};

}  // namespace verbena::kernel
