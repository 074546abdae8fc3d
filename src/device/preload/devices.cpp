// ibv_*: devices, and what there is to know of them (ibv_get_device_list(3), ibv_open_device(3), ibv_query_port(3), …).
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "device/preload/real.hpp"
#include "device/preload/soft_devices.hpp"

// Macros in front of functions that are to be defined here.
#undef ibv_get_device_list
#undef ibv_query_port

using verbatim::device::Context;
using verbatim::preload::find_real;
using verbatim::preload::is_soft;
using verbatim::preload::soft_of;

// What libibverbs exports for programs that are not to call it by these names: <infiniband/driver.h> has this one.
enum ibv_gid_type_sysfs { IBV_GID_TYPE_SYSFS_IB_ROCE_V1, IBV_GID_TYPE_SYSFS_ROCE_V2 };

namespace {

// The entry at a place of the table; empty where there is none. 0 or an errno value.
int find_gid(Context& context, std::uint32_t port, std::uint32_t index, ibv_gid_entry& entry) {
  ibv_port_attr attributes;
  if (const int problem = context.query_port(static_cast<std::uint8_t>(port), attributes); problem != 0) return problem;
  if (index >= static_cast<std::uint32_t>(attributes.gid_tbl_len)) return EINVAL;
  std::vector<ibv_gid_entry> entries;
  if (const int problem = context.query_gid_table(entries); problem != 0) return problem;
  entry = {};
  const auto found = std::ranges::find_if(
      entries, [&](const ibv_gid_entry& one) { return one.port_num == port && one.gid_index == index; });
  if (found != entries.end()) entry = *found;
  return 0;
}

// As the older verbs fail.
int minus_one(int problem) {
  if (problem == 0) return 0;
  errno = problem;
  return -1;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  static auto* const real_list = find_real<decltype(ibv_get_device_list)>("ibv_get_device_list");
  int real_count = 0;
  ibv_device** const real = real_list != nullptr ? real_list(&real_count) : nullptr;
  ibv_device* const soft = verbatim::preload::soft_device();
  // The real library's list, which it wants back; its devices; ours; and the end.
  auto** const all = static_cast<ibv_device**>(std::calloc(static_cast<std::size_t>(real_count) + 3, sizeof(void*)));
  if (all == nullptr) return errno = ENOMEM, nullptr;
  all[0] = reinterpret_cast<ibv_device*>(real);
  if (real != nullptr) std::copy_n(real, real_count, all + 1);
  if (soft != nullptr) all[1 + real_count] = soft;
  if (count != nullptr) *count = real_count + (soft != nullptr ? 1 : 0);
  return all + 1;
}

void ibv_free_device_list(ibv_device** list) {
  if (list == nullptr) return;
  auto** const real = reinterpret_cast<ibv_device**>(list[-1]);
  static auto* const real_free = find_real<decltype(ibv_free_device_list)>("ibv_free_device_list");
  if (real != nullptr && real_free != nullptr) real_free(real);
  std::free(list - 1);
}

// Of a soft device each opening has its own; before that there is none.
__be64 ibv_get_device_guid(ibv_device* device) {
  if (is_soft(device)) return 0;
  VERBATIM_CALL_REAL(ibv_get_device_guid, 0, device);
}

int ibv_get_device_index(ibv_device* device) {
  if (is_soft(device)) return -1;
  VERBATIM_CALL_REAL(ibv_get_device_index, -1, device);
}

ibv_context* ibv_open_device(ibv_device* device) {
  if (is_soft(device)) return verbatim::preload::open_soft();
  VERBATIM_CALL_REAL(ibv_open_device, nullptr, device);
}

int ibv_close_device(ibv_context* context) {
  if (soft_of(context) != nullptr) return verbatim::preload::close_soft(context), 0;
  VERBATIM_CALL_REAL(ibv_close_device, -1, context);
}

ibv_context* ibv_import_device(int descriptor) {
  if (verbatim::preload::is_of_soft(descriptor)) return errno = EOPNOTSUPP, nullptr;
  VERBATIM_CALL_REAL(ibv_import_device, nullptr, descriptor);
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  if (Context* soft = soft_of(context)) {
    ibv_device_attr_ex all;
    const int problem = soft->query_device(all);
    if (problem == 0) *attributes = all.orig_attr;
    return problem;
  }
  VERBATIM_CALL_REAL(ibv_query_device, errno, context, attributes);
}

// The attributes as they were before link_layer was among them: a program that knows more asks the context itself.
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attributes) {
  if (Context* soft = soft_of(context)) {
    ibv_port_attr all;
    const int problem = soft->query_port(port, all);
    if (problem == 0) std::memcpy(attributes, &all, offsetof(ibv_port_attr, link_layer));
    return problem;
  }
  VERBATIM_CALL_REAL(ibv_query_port, errno, context, port, attributes);
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  if (Context* soft = soft_of(context)) {
    ibv_gid_entry entry;
    const int problem = index < 0 ? EINVAL : find_gid(*soft, port, static_cast<std::uint32_t>(index), entry);
    if (problem == 0) *gid = entry.gid;
    return minus_one(problem);
  }
  VERBATIM_CALL_REAL(ibv_query_gid, -1, context, port, index, gid);
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* to,
                      std::uint32_t flags, std::size_t entry_bytes) {
  if (Context* soft = soft_of(context)) {
    if (flags != 0) return EOPNOTSUPP;
    ibv_gid_entry entry;
    if (const int problem = find_gid(*soft, port, index, entry); problem != 0) return problem;
    if (entry.port_num == 0) return ENODATA;  // an empty place
    std::memcpy(to, &entry, std::min(entry_bytes, sizeof(entry)));
    return 0;
  }
  VERBATIM_CALL_REAL(_ibv_query_gid_ex, errno, context, port, index, to, flags, entry_bytes);
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* to, std::size_t capacity, std::uint32_t flags,
                             std::size_t entry_bytes) {
  if (Context* soft = soft_of(context)) {
    if (flags != 0) return -EOPNOTSUPP;
    std::vector<ibv_gid_entry> entries;
    if (const int problem = soft->query_gid_table(entries); problem != 0) return -problem;
    if (entries.size() > capacity) return -EINVAL;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::memcpy(reinterpret_cast<std::byte*>(to) + i * entry_bytes, &entries[i],
                  std::min(entry_bytes, sizeof(ibv_gid_entry)));
    }
    return static_cast<ssize_t>(entries.size());
  }
  VERBATIM_CALL_REAL(_ibv_query_gid_table, -errno, context, to, capacity, flags, entry_bytes);
}

int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, ibv_gid_type_sysfs* type) {
  if (Context* soft = soft_of(context)) {
    ibv_gid_entry entry;
    const int problem = find_gid(*soft, port, index, entry);
    if (problem == 0) {
      *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? IBV_GID_TYPE_SYSFS_ROCE_V2 : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
    }
    return minus_one(problem);
  }
  VERBATIM_CALL_REAL(ibv_query_gid_type, -1, context, port, index, type);
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  if (Context* soft = soft_of(context)) {
    std::uint16_t value = 0;
    const int problem = soft->query_pkey(port, index, value);
    if (problem == 0) *pkey = htons(value);
    return minus_one(problem);
  }
  VERBATIM_CALL_REAL(ibv_query_pkey, -1, context, port, index, pkey);
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  if (Context* soft = soft_of(context)) {
    std::uint16_t value = 0;
    for (int index = 0; soft->query_pkey(port, index, value) == 0; ++index) {
      if (value == ntohs(pkey)) return index;
    }
    return -1;
  }
  VERBATIM_CALL_REAL(ibv_get_pkey_index, -1, context, port, pkey);
}

}  // extern "C"
