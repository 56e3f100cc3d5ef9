/* UNDER_ADDRESS_SANITIZER where a program runs under it: it knows gone memory, and its threads cannot begin without
 * memory. UNDER_MEMORY_SANITIZER likewise: gone memory is memory that nobody has set. */
#ifndef RAPT_TESTS_ADDRESS_SANITIZER_H
#define RAPT_TESTS_ADDRESS_SANITIZER_H

#if defined __SANITIZE_ADDRESS__
#define UNDER_ADDRESS_SANITIZER
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define UNDER_ADDRESS_SANITIZER
#endif
#if __has_feature(memory_sanitizer)
#define UNDER_MEMORY_SANITIZER
#endif
#endif

#endif
