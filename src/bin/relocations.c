/* Compiles if the C library applies packed relocations in a static program. */
#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error "glibc 2.36 or later"
#endif
