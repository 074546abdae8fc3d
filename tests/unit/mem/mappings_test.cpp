#include "mem/mappings.hpp"

#include <gtest/gtest.h>

namespace verbatim::mem {
namespace {

TEST(MappingLineTest, TellsWhoseThePagesAre) {
  const auto heap =
      parse_mapping_line("55d0aa000000-55d0aa021000 rw-p 00000000 00:00 0                          [heap]");
  ASSERT_TRUE(heap);
  EXPECT_EQ(heap->range, (AddressRange{0x55d0aa000000, 0x55d0aa021000}));
  EXPECT_TRUE(heap->private_anonymous);
  const auto is_private_anonymous = [](const char* line) { return parse_mapping_line(line)->private_anonymous; };
  EXPECT_TRUE(is_private_anonymous("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 "));
  EXPECT_TRUE(is_private_anonymous("7f0000000000-7f0000001000 r--p 00000000 00:00 0 [anon:mine]"));
  EXPECT_FALSE(is_private_anonymous("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [stack]"));
  EXPECT_FALSE(is_private_anonymous("7f0000000000-7f0000001000 rw-s 00000000 00:01 0 /dev/zero (deleted)"));
  EXPECT_FALSE(is_private_anonymous("7f0000000000-7f0000001000 rw-p 00002000 fe:00 77 /usr/lib/libc.so.6"));
}

TEST(MappingLineTest, IsNothingElse) {
  for (const auto* line :
       {"", "Rss:   4 kB", "VmFlags: rd wr mr", "7f00-7f01", "xx-yy rw-p 0 0 0", "THPeligible:    0"}) {
    EXPECT_FALSE(parse_mapping_line(line)) << line;
  }
}

}  // namespace
}  // namespace verbatim::mem
