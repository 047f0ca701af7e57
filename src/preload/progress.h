// How the device gets to run in a program whose libibverbs is not ours: that library stores to doorbell records and to
// UAR pages that nobody watches, so its calls on the data path are replaced, object by object, by ones that do as
// before and then let the device look.
//
// Threads: any.
#pragma once

#include <cstdint>

struct ib_uverbs_ioctl_hdr;
struct verbs_context;
struct ibv_cq_ex;
struct ibv_qp_ex;

namespace verbena::preload {

// A request is about to go to the device: what was known about objects it destroys is forgotten.
void before_request(const ib_uverbs_ioctl_hdr& request);

// A context of a newer libibverbs begins with operations that the headers of this build do not know; what they know lies
// at its end, where the ibv_context is. Null if `whole` is no such thing.
verbs_context* known_part(verbs_context* whole);
// The operations of a context, whenever a provider has (re)set them. Others' contexts are left alone.
void hook_context(verbs_context* context);
// The operations of extended objects; harmless if done twice or on others' objects.
void hook_qp(ibv_qp_ex* qp);
void hook_cq(ibv_cq_ex* cq);

}  // namespace verbena::preload
