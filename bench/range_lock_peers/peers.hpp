#pragma once

// All peers of the range lock, in the order of the benchmark's rows.

#include "bench/range_lock_peers/kara_tree.hpp"
#include "bench/range_lock_peers/kogan_list.hpp"
#include "bench/range_lock_peers/kogan_reader_writer_list.hpp"
#include "bench/range_lock_peers/leanstore_bitmap.hpp"
#include "bench/range_lock_peers/mutex_and_map.hpp"
#include "bench/range_lock_peers/no_lock.hpp"
#include "bench/range_lock_peers/one_mutex.hpp"
#include "bench/range_lock_peers/pnova_segments.hpp"
#include "bench/range_lock_peers/song_skip_list.hpp"
