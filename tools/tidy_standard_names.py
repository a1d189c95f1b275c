"""The names of the standard library that tools/tidy.py checks, by header."""

# A source may use these names only if it, or a header of ours that it includes, includes the header. The
# builds precompile most of these (cmake/sluice_precompiled.cmake), so a missing include would pass there and fail in
# a consumer's build.
STANDARD_NAMES = {
    "algorithm": "adjacent_find all_of any_of clamp copy copy_if copy_n count_if equal fill fill_n find find_if "
                 "find_if_not generate is_sorted lower_bound max max_element min min_element minmax mismatch none_of "
                 "partition_point ranges remove_if replace reverse rotate search sort stable_sort transform unique "
                 "upper_bound",
    "array": "array to_array",
    "atomic": "atomic atomic_ref atomic_thread_fence memory_order memory_order_acquire memory_order_acq_rel "
              "memory_order_relaxed memory_order_release memory_order_seq_cst",
    "bit": "bit_cast bit_ceil bit_floor bit_width byteswap countl_zero countr_one countr_zero endian has_single_bit "
           "popcount",
    "bitset": "bitset",
    "charconv": "chars_format from_chars to_chars",
    "chrono": "chrono",
    "condition_variable": "condition_variable condition_variable_any",
    "coroutine": "coroutine_handle coroutine_traits noop_coroutine suspend_always suspend_never",
    "cstdio": "FILE fclose fflush fopen fread fwrite printf snprintf",
    "cstdlib": "_Exit abort aligned_alloc exit free getenv malloc strtoull",
    "cstring": "memchr memcmp memcpy memmove memset strerror strlen",
    "ctime": "mktime time_t tm",
    "deque": "deque",
    "exception": "current_exception exception_ptr rethrow_exception terminate uncaught_exceptions",
    "expected": "expected unexpect unexpected",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "bind_front cref equal_to function greater hash invoke less move_only_function ref reference_wrapper",
    "initializer_list": "initializer_list",
    "iterator": "advance back_inserter distance forward_iterator_tag input_iterator_tag inserter next prev ssize",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "addressof align allocator construct_at destroy_at enable_shared_from_this make_shared make_unique "
              "shared_ptr to_address unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "new": "align_val_t bad_alloc launder nothrow",
    "numeric": "accumulate gcd iota reduce",
    "optional": "make_optional nullopt optional",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution",
    "semaphore": "binary_semaphore counting_semaphore",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "span": "as_bytes as_writable_bytes span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument length_error logic_error out_of_range runtime_error",
    "stop_token": "stop_callback stop_source stop_token",
    "string": "getline stoi stoul string to_string u16string",
    "string_view": "string_view u16string_view",
    "system_error": "errc error_category error_code generic_category system_category system_error",
    "thread": "jthread this_thread thread",
    "tuple": "apply make_tuple tie tuple",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_multiset unordered_set",
    "utility": "cmp_less exchange in_place index_sequence make_index_sequence make_pair pair piecewise_construct "
               "to_underlying unreachable",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
