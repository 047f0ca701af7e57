// Queues whose records are looked at, because nothing else tells that the program gave them work.
//
// Adding and removing cost the same however many there are; a look takes a bounded number of them, so that whoever
// waits for the lock does not wait for all.
// Threads: under the File's lock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernel/object.h"

namespace verbena::kernel {

class WatchList {
 public:
  struct Ring {
    bool send;  // a send queue is to be run; else a CQ is to be armed
    std::uint32_t number;
  };

  // Nothing if it is in the list already.
  void add(Object& object);
  // Nothing if it is not.
  void remove(Object& object);
  // The next look takes its record for changed, whatever it says: a queue that begins anew counts from zero again, and may
  // come to where it was before anybody looked. Nothing if it is not in the list, or sends nothing.
  void look_again(const Object& object);
  bool empty() const { return entries_.empty(); }
  // Looks at the next records and appends what they ask for. Returns whether it came to the end of the list.
  bool look(std::vector<Ring>* rings);
  // The register of a CQ was written. Whether that is news: a program writes the record first, which look() saw already.
  bool register_is_news(std::uint32_t cqn);

 private:
  struct Entry {
    Object* object;
    bool armed_before = false;  // the look before found its record changed
    bool again = false;
    bool just_armed = false;    // CQ: that look or this one did, and its register has not been seen since
  };
  std::vector<Entry> entries_;  // an object knows its place (Object::watched)
  std::unordered_map<std::uint32_t, Object*> cqs_;
  std::size_t next_ = 0;
};

}  // namespace verbena::kernel
