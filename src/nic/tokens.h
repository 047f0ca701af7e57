// Tokens of the data path: which queue of which device a doorbell is for.
// Threads: any. A token is found again by its number and never freed, so that a late doorbell of a destroyed queue
// still lands on memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kernel/node.h"

namespace verbena::nic {

struct Token {
  kernel::Node* node;
  void* inner;  // the device's own token
};

class Tokens {
 public:
  static Tokens& get();
  // Null: there is no such queue.
  void* send_queue(kernel::Node& node, std::uint32_t qpn);
  void* completion_queue(kernel::Node& node, std::uint32_t cqn);

 private:
  using Key = std::pair<kernel::Node*, std::uint32_t>;
  using Table = std::map<Key, std::unique_ptr<Token>>;
  void* store(Table& table, kernel::Node& node, std::uint32_t number, void* inner);

  Table send_, completion_;
};

}  // namespace verbena::nic
