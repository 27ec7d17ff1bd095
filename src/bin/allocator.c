/* Settings of jemalloc, read before main; _RJEM_MALLOC_CONF in the environment overrides them.
 * One arena: two threads that seldom allocate at once need no room of their own.
 * Freed pages return to the system after 10 ms: sooner would cost every poll, later adds up after huge replies. */
const char *_rjem_malloc_conf = "narenas:1,dirty_decay_ms:10,muzzy_decay_ms:0";
