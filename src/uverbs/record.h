// Records what passes seam A: one line of JSON for each request of the program, with names of methods and attributes and
// the structures taken apart, appended to the file that VERBENA_RECORD names. docs/record.md describes the lines.
//
// Costs nothing when off: backend tables are wrapped when they are handed out, or not at all.
//
// Threads: any; a line is written by one system call, so several threads and processes may share a file.
#pragma once

#include <memory>
#include <string>

#include "uverbs/backend.h"
#include "uverbs/request.h"

namespace verbena::uverbs {

// `backend`, or a table that records and passes on to it if VERBENA_RECORD is set. One backend a process is recorded.
const Backend& recorded(const Backend& backend, const UserMemory& memory);

// One request, in two steps: what goes in is kept before it is answered, since answers may overwrite it.
class RequestRecord {
 public:
  RequestRecord(const ib_uverbs_ioctl_hdr* request, const UserMemory& memory);
  ~RequestRecord();
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  // The members of its JSON object from "object" on, without braces; `error` is the errno of the answer.
  std::string finish(int error) const;

 private:
  struct Copy;
  std::unique_ptr<Copy> copy_;
};

}  // namespace verbena::uverbs
