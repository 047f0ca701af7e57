// Where a path that a program named really lies.
//
// Threads: a Place belongs to one thread.
#pragma once

#include <fcntl.h>

#include <string>

#include "preload/state.h"

namespace verbena::preload {

class Place {
 public:
  explicit Place(const char* path) : path_(path) {
    if (worth_a_look(path) && !inside) [[unlikely]]
      look(path);
  }
  // `path` may be relative to the open folder `folder`.
  Place(int folder, const char* path) : Place(path) {
    if (state_ == nullptr && folder >= 0 && path != nullptr && path[0] != '/' && state() != nullptr) [[unlikely]]
      look_below(folder, path);
  }

  // What to hand to libc.
  const char* path() const { return path_; }
  // Set if the path is ours: path() is absolute then, and lies in the tree.
  const State* owner() const { return state_; }
  const std::string& virtual_path() const { return virtual_; }

 private:
  void look(const char* path);
  void look_below(int folder, const char* path);

  const char* path_;
  const State* state_ = nullptr;
  std::string virtual_, real_;
};

// Opens what is at a place of ours, by the flags of open(2). -1 and errno on error, kOrdinary if the file in the tree
// is to be opened like any other.
inline constexpr int kOrdinary = -2;
int open_place(const Place& place, int flags);

// Takes the tree's root off a path that libc gave; returns the new length. Not terminated.
std::size_t hide_root(const State& state, char* path, std::size_t length);

}  // namespace verbena::preload
