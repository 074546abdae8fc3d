// Keys, bounds and rights: what must not be reached is not reached, and both sides are told.
#include <cerrno>

#include "conformance/case.hpp"

namespace verbatim::conformance {
namespace {

constexpr std::uint32_t wrong_key = 0x00badbad;

class LocalProtection : public ConformanceCase {};

TEST_F(LocalProtection, SendFromAnUnknownKey) {
  connect();
  ibv_sge piece = a.piece(0, 64);
  piece.lkey = wrong_key;
  b.receive(1, {b.piece(0, 64)});
  a.post({send(2, {piece}), send(3, {a.piece(0, 64)})});
  const std::vector<ibv_wc> ended = a.sent(2);
  EXPECT_TRUE(failed(ended[0], 2, key_error(a)));
  EXPECT_TRUE(failed(ended[1], 3, IBV_WC_WR_FLUSH_ERR));
  EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(LocalProtection, SendFromBeyondTheRegion) {
  connect(IBV_QPT_RC, {}, 8192);
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {a.piece(8192 - 10, 11)}));
  EXPECT_TRUE(failed(a.sent(), 2, IBV_WC_LOC_PROT_ERR));
  EXPECT_TRUE(b.idle(b.recv_cq));
}

TEST_F(LocalProtection, SendFromAnotherProtectionDomain) {
  connect();
  Side other = a;
  other.pd = a.endpoint->alloc_pd().object;
  other.make_region(4096);
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {other.piece(0, 64)}));
  EXPECT_TRUE(failed(a.sent(), 2, key_error(a)));
}

// The receiver can't place the message: its own request fails, and the sender is told that the remote operation did.
TEST_F(LocalProtection, ReceiveIntoAnUnknownKey) {
  connect();
  ibv_sge piece = b.piece(0, 64);
  piece.lkey = wrong_key;
  b.receive(1, {piece});
  b.receive(2, {b.piece(0, 64)});
  a.post(send(3, {a.piece(0, 64)}));
  EXPECT_TRUE(failed(a.sent(), 3, IBV_WC_REM_OP_ERR));
  const std::vector<ibv_wc> received = b.received(2);
  EXPECT_TRUE(failed(received[0], 1, key_error(b)));
  EXPECT_TRUE(failed(received[1], 2, IBV_WC_WR_FLUSH_ERR));
  EXPECT_TRUE(b.wait_for_state(IBV_QPS_ERR));
  EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
}

TEST_F(LocalProtection, ReceiveIntoMemoryThatMayNotBeWritten) {
  connect();
  Side readable = b;
  readable.make_region(4096, IBV_ACCESS_REMOTE_READ);
  b.receive(1, {readable.piece(0, 64)});
  a.fill(0, 64, 1);
  a.post(send(2, {a.piece(0, 64)}));
  EXPECT_TRUE(failed(a.sent(), 2, IBV_WC_REM_OP_ERR));
  EXPECT_TRUE(failed(b.received(), 1, key_error(b)));
  EXPECT_TRUE(holds_zeros(readable, 0, 64));
}

TEST_F(LocalProtection, ReadIntoMemoryThatMayNotBeWritten) {
  connect();
  Side readable = a;
  readable.make_region(4096, IBV_ACCESS_REMOTE_READ);
  b.fill(0, 64, 1);
  a.post(read(1, {readable.piece(0, 64)}, b, 0));
  EXPECT_TRUE(failed(a.sent(), 1, IBV_WC_LOC_PROT_ERR));
  EXPECT_TRUE(holds_zeros(readable, 0, 64));
}

TEST_F(LocalProtection, DeregisteredMemory) {
  connect();
  EXPECT_EQ(a.endpoint->dereg_mr(a.mr), 0);
  b.receive(1, {b.piece(0, 64)});
  a.post(send(2, {a.piece(0, 64)}));
  EXPECT_TRUE(failed(a.sent(), 2, key_error(a)));
}

TEST_F(LocalProtection, RemoteWriteRightsNeedLocalOnes) {
  const Buffer buffer = a.endpoint->allocate(4096, MemoryKind::anonymous).buffer;
  EXPECT_EQ(a.endpoint->reg_mr(a.pd, buffer, 0, 4096, IBV_ACCESS_REMOTE_WRITE).error, EINVAL);
  EXPECT_EQ(a.endpoint->reg_mr(a.pd, buffer, 0, 4096, IBV_ACCESS_REMOTE_ATOMIC).error, EINVAL);
}

TEST_F(LocalProtection, DomainInUseStays) {
  a.make_region(4096);
  EXPECT_EQ(a.endpoint->dealloc_pd(a.pd), EBUSY);
}

class RemoteProtection : public ConformanceCase {
 protected:
  // The request fails, the QPs of both sides are in ERR, and b's memory is as it was.
  void expect_refused(const SendRequest& request, ibv_wc_status status = IBV_WC_REM_ACCESS_ERR) {
    b.receive(77, {});
    a.post({request, send(78, {a.piece(0, 8)})});
    const std::vector<ibv_wc> ended = a.sent(2);
    EXPECT_TRUE(failed(ended[0], request.id, status));
    EXPECT_TRUE(failed(ended[1], 78, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
    EXPECT_TRUE(b.wait_for_state(IBV_QPS_ERR));
    EXPECT_TRUE(failed(b.received(), 77, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(holds_zeros(b, 0, 8192));
  }
};

TEST_F(RemoteProtection, WriteWithAnUnknownKey) {
  connect();
  a.fill(0, 64, 1);
  SendRequest request = write(1, {a.piece(0, 64)}, b, 0);
  request.rkey = wrong_key;
  expect_refused(request);
}

TEST_F(RemoteProtection, WriteBeyondTheEnd) {
  connect(IBV_QPT_RC, {}, 8192);
  a.fill(0, 64, 1);
  expect_refused(write(1, {a.piece(0, 64)}, b, 8192 - 63));
}

TEST_F(RemoteProtection, WriteBeforeTheStart) {
  connect(IBV_QPT_RC, {}, 8192);
  a.fill(0, 64, 1);
  SendRequest request = write(1, {a.piece(0, 64)}, b, 0);
  request.remote_address -= 1;
  expect_refused(request);
}

TEST_F(RemoteProtection, WriteThatWrapsAroundTheAddressSpace) {
  connect(IBV_QPT_RC, {}, 8192);
  a.fill(0, 64, 1);
  SendRequest request = write(1, {a.piece(0, 64)}, b, 0);
  request.remote_address = ~std::uint64_t{0} - 31;
  expect_refused(request);
}

// Where the bounds are checked once for the message, none of its packets may have been placed.
TEST_F(RemoteProtection, LongWriteThatEndsBeyondTheEnd) {
  connect(IBV_QPT_RC, {}, 8192);
  a.fill(0, 8000, 1);
  expect_refused(write(1, {a.piece(0, 8000)}, b, 200));
}

TEST_F(RemoteProtection, ReadWithAnUnknownKey) {
  connect();
  SendRequest request = read(1, {a.piece(0, 64)}, b, 0);
  request.rkey = wrong_key;
  expect_refused(request);
}

TEST_F(RemoteProtection, ReadBeyondTheEnd) {
  connect(IBV_QPT_RC, {}, 8192);
  expect_refused(read(1, {a.piece(0, 5000)}, b, 8192 - 4999));
}

TEST_F(RemoteProtection, AtomicBeyondTheEnd) {
  if (b.device.orig_attr.atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "the device has no atomics";
  connect(IBV_QPT_RC, {}, 8192);
  expect_refused(fetch_and_add(1, a.piece(0, 8), b, 8192, 1));
}

// An affiliated error of the responder (specification, volume 1, 11.6.3.2); not every device reports it.
TEST_F(RemoteProtection, IsReportedToTheResponder) {
  connect();
  SendRequest request = write(1, {a.piece(0, 64)}, b, 0);
  request.rkey = wrong_key;
  expect_refused(request);
  const auto event = b.async_event(IBV_EVENT_QP_ACCESS_ERR, 500ms);
  if (!event) GTEST_SKIP() << "the device reports no access error to the responder";
  EXPECT_EQ(event->qp, b.qp);
}

class RemoteRights : public RemoteProtection {
 protected:
  // b's region grants only this.
  void connect_granting(int access) {
    for (Side* side : {&a, &b}) side->make_qp(side->qp_options());
    a.make_region(8192);
    b.make_region(8192, access);
    connect_qps();
    a.fill(0, 64, 1);
  }
};

TEST_F(RemoteRights, WriteNeedsRemoteWrite) {
  connect_granting(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  expect_refused(write(1, {a.piece(0, 64)}, b, 0));
}

TEST_F(RemoteRights, ReadNeedsRemoteRead) {
  connect_granting(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  expect_refused(read(1, {a.piece(0, 64)}, b, 0));
}

TEST_F(RemoteRights, AtomicNeedsRemoteAtomic) {
  if (b.device.orig_attr.atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "the device has no atomics";
  connect_granting(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  expect_refused(fetch_and_add(1, a.piece(0, 8), b, 0, 1));
}

TEST_F(RemoteRights, AnotherProtectionDomainGrantsNothing) {
  for (Side* side : {&a, &b}) side->make_qp(side->qp_options());
  a.make_region(8192);
  b.pd = b.endpoint->alloc_pd().object;
  b.make_region(8192);
  connect_qps();
  a.fill(0, 64, 1);
  expect_refused(write(1, {a.piece(0, 64)}, b, 0));
}

TEST_F(RemoteRights, DeregisteredMemoryGrantsNothing) {
  connect_granting(every_access);
  EXPECT_EQ(b.endpoint->dereg_mr(b.mr), 0);
  expect_refused(write(1, {a.piece(0, 64)}, b, 0));
}

// What the QP itself does not allow: an access error, or an invalid request as the specification's table of responder
// errors has it for an operation that the QP does not support. Devices do either.
class QpRights : public RemoteProtection {
 protected:
  void expect_forbidden(unsigned granted, const std::function<SendRequest()>& make_request) {
    Route route;
    route.access = granted;
    connect(IBV_QPT_RC, route, 8192);
    a.fill(0, 64, 1);
    a.post(make_request());
    const ibv_wc ended = a.sent();
    EXPECT_TRUE(ended.status == IBV_WC_REM_ACCESS_ERR || ended.status == IBV_WC_REM_INV_REQ_ERR)
        << ibv_wc_status_str(ended.status);
    EXPECT_TRUE(a.wait_for_state(IBV_QPS_ERR));
    EXPECT_TRUE(holds_zeros(b, 0, 8192));
  }
};

TEST_F(QpRights, WriteNeedsRemoteWrite) {
  expect_forbidden(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, [&] { return write(1, {a.piece(0, 64)}, b, 0); });
}

TEST_F(QpRights, ReadNeedsRemoteRead) {
  expect_forbidden(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC, [&] { return read(1, {a.piece(0, 64)}, b, 0); });
}

TEST_F(QpRights, AtomicNeedsRemoteAtomic) {
  if (b.device.orig_attr.atomic_cap == IBV_ATOMIC_NONE) GTEST_SKIP() << "the device has no atomics";
  expect_forbidden(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                   [&] { return fetch_and_add(1, a.piece(0, 8), b, 0, 1); });
}

}  // namespace
}  // namespace verbatim::conformance
