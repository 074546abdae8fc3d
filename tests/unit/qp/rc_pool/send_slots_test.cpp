#include "qp/send_slots.hpp"

#include <gtest/gtest.h>

namespace verbatim::qp {
namespace {

// As a queue does: whether the post asked for a completion.
bool post(SendSlots& slots) {
  const bool signalled = slots.must_signal();
  slots.posted(signalled);
  return signalled;
}

TEST(SendSlots, KeepTheLastOnesForControl) {
  SendSlots slots(4, 2, 32);
  EXPECT_EQ(slots.data_free(), 4U);
  EXPECT_EQ(slots.control_free(), 6U);
  for (int i = 0; i < 4; ++i) post(slots);
  EXPECT_EQ(slots.data_free(), 0U);
  EXPECT_EQ(slots.control_free(), 2U);
  for (int i = 0; i < 2; ++i) post(slots);
  EXPECT_EQ(slots.data_free(), 0U);
  EXPECT_EQ(slots.control_free(), 0U);
}

TEST(SendSlots, ControlUsesWhatDataLeaves) {
  SendSlots slots(4, 2, 32);
  post(slots);
  EXPECT_EQ(slots.control_free(), 5U);
  EXPECT_EQ(slots.data_free(), 3U);
}

TEST(SendSlots, ACompletionSpeaksForAllBeforeIt) {
  SendSlots slots(16, 0, 4);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(post(slots), i == 3) << "every fourth";
  EXPECT_EQ(slots.completed(3), 4U);
  EXPECT_EQ(slots.outstanding(), 3U);
  EXPECT_EQ(slots.completed(3), 0U) << "once only";
  EXPECT_EQ(slots.completed(7), 0U) << "not posted yet";
  EXPECT_EQ(slots.completed(6), 3U) << "a failed one completes though it asked for nothing";
  EXPECT_EQ(slots.data_free(), 16U);
}

TEST(SendSlots, AskForCompletionsFourTimesARoundHoweverLongTheInterval) {
  SendSlots slots(16, 4, 1000);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(post(slots), i % 4 == 3) << i;
  for (int i = 16; i < 20; ++i) EXPECT_TRUE(post(slots)) << i << ": beyond what data may use";
}

TEST(SendSlots, NeverFillWithoutACompletionToCome) {
  for (std::uint32_t data = 1; data <= 9; ++data) {
    for (const std::uint32_t control : {0U, 1U, 8U}) {
      SendSlots slots(data, control, 1000);
      bool last = false;
      while (slots.data_free() > 0) last = post(slots);
      EXPECT_TRUE(last) << data << " + " << control;
    }
  }
}

TEST(SendSlots, CountOnWhenOrdinalsWrap) {
  SendSlots slots(8, 0, 4, WorkId::slot_mask - 2);
  for (int i = 0; i < 6; ++i) post(slots);
  EXPECT_EQ(slots.next_ordinal(), 3U);
  EXPECT_EQ(slots.completed(WorkId::slot_mask), 3U);
  EXPECT_EQ(slots.completed(WorkId::slot_mask), 0U);
  EXPECT_EQ(slots.completed(2), 3U);
  EXPECT_EQ(slots.outstanding(), 0U);
}

TEST(SendSlots, KnowAnOlderCompletionAfterAReset) {
  SendSlots slots(8, 0, 4);
  for (int i = 0; i < 5; ++i) post(slots);
  slots.forget();
  EXPECT_EQ(slots.data_free(), 8U);
  post(slots);
  EXPECT_EQ(slots.completed(4), 0U);
  EXPECT_EQ(slots.completed(5), 1U);
}

}  // namespace
}  // namespace verbatim::qp
