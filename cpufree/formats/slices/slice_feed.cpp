// The order in which rings bring a share on chip (SliceFeed).
#include <algorithm>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/formats/slices/slice_places.hpp"
#include "cpufree/formats/warp_slices_build.hpp"

namespace cpufree {

namespace {

// Of a slice of the share.
template <class T>
std::int64_t bytes_in(const WarpSliceShape& shape, const WarpSlice& slice) {
  return slice_bytes(slice, !shape.dictionary.empty(), shape.stored_bytes(sizeof(T)));
}

// Entries of a row that travel together: those of the chunks of a portion.
template <class T>
std::int32_t portion_width(const WarpSliceShape& shape, const WarpSlice& slice) {
  WarpSlice chunk = slice;
  chunk.width = in_runs(slice.code) ? kRunWidth : kChunkWidth;
  const auto bytes = static_cast<int>(bytes_in<T>(shape, chunk));
  return chunk.width * chunks_of_portion(bytes);
}

// The item of the portion that begins with entry k of a slice's rows.
template <class T>
FeedItem item_of(const WarpSliceShape& shape, std::size_t s, std::int32_t k) {
  WarpSlice part = shape.slice[s];
  part.width = k;
  FeedItem item{part.first * static_cast<std::uint32_t>(kSliceUnit / kFeedGrain) +
                    static_cast<std::uint32_t>(bytes_in<T>(shape, part) / kFeedGrain),
                k == 0 ? static_cast<std::uint32_t>(s) + 1U : 0U};
  part.width = std::min(shape.slice[s].width - k, portion_width<T>(shape, part));
  item.what |= static_cast<std::uint32_t>(bytes_in<T>(shape, part) / kFeedGrain) << 24U;
  return item;
}

}  // namespace

template <class T>
SliceFeed feed_of(const WarpSliceShape& shape, const std::vector<LaneRows>& ranges, int warps) {
  SliceFeed feed;
  require(shape.slice.size() <= at(kMostFeedSlices), "a block can have at most " +
                                                         std::to_string(kMostFeedSlices) +
                                                         " slices of 32 rows; use more GPUs");
  for (int w = 0; w < warps; ++w) {
    feed.first.push_back(static_cast<std::uint32_t>(feed.items.size()));
    std::int32_t begin = 0;  // of a range's slices
    for (const LaneRows& range : ranges) {
      const std::int32_t end = begin + range.slices();
      const std::int32_t in_turn = range.slices_in_turn();
      for (std::int32_t turn = begin + w * in_turn; turn < end; turn += warps * in_turn)
        for (std::int32_t s = turn; s < std::min(turn + in_turn, end); ++s) {
          const WarpSlice& slice = shape.slice[at(s)];
          const std::int32_t step = portion_width<T>(shape, slice);
          std::int32_t k = 0;
          do feed.items.push_back(item_of<T>(shape, at(s), k));
          while ((k += step) < slice.width);
        }
      begin = end;
    }
  }
  feed.first.push_back(static_cast<std::uint32_t>(feed.items.size()));
  return feed;
}

template <class T>
std::int32_t slot_bytes(const WarpSliceShape& shape) {
  std::int64_t most = 0;
  for (WarpSlice part : shape.slice) {
    part.width = std::min(part.width, portion_width<T>(shape, part));
    most = std::max(most, bytes_in<T>(shape, part));
  }
  return static_cast<std::int32_t>((most + kSliceHead + kSliceUnit - 1) / kSliceUnit * kSliceUnit);
}

template SliceFeed feed_of<float>(const WarpSliceShape&, const std::vector<LaneRows>&, int);
template SliceFeed feed_of<double>(const WarpSliceShape&, const std::vector<LaneRows>&, int);
template std::int32_t slot_bytes<float>(const WarpSliceShape&);
template std::int32_t slot_bytes<double>(const WarpSliceShape&);

}  // namespace cpufree
