/* Arrays and structs written in place, in C and in C++11 and later: what RAPT_SHAPE, RAPT_AXES, RAPT_APPLY,
 * RAPT_SEQUENTIAL and RAPT_MASK are made of. They serve the call that they are written in: in C++ they end with its
 * full expression, in C with its block. In C++ numbers may not narrow, as in every braced list, and a comma in a
 * field's value wants parentheses. */
#ifndef RAPT_IN_PLACE_H
#define RAPT_IN_PLACE_H

#include <stddef.h>

#ifndef __cplusplus

/* How many values of the type are written; as a constant array; as a constant struct by its fields. */
#define RAPT_LENGTH_OF(type, ...) ((int)(sizeof((type const[]){__VA_ARGS__}) / sizeof(type))) /* evaluates nothing */
#define RAPT_ARRAY_OF(type, ...) ((type const[]){__VA_ARGS__})
#define RAPT_STRUCT_OF(type, ...) (&(type const){__VA_ARGS__})

#else

#include <initializer_list>

template <typename T> using rapt_array_of = T[];

template <typename T> inline const T *rapt_address_of(const T &object)
{
    return &object;
}

#define RAPT_LENGTH_OF(type, ...) (static_cast<int>(sizeof(rapt_array_of<type>{__VA_ARGS__}) / sizeof(type)))
#define RAPT_ARRAY_OF(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())

/* Designated initialisers would be C++20's, in the order of the members only; so each .field = value is an
 * assignment. */
#define RAPT_STRUCT_OF(type, ...)                                                                                      \
    rapt_address_of(__extension__({                                                                                    \
        type rapt_struct = type();                                                                                     \
        RAPT_SET_CHOICE_(__VA_ARGS__, RAPT_SET_8_, RAPT_SET_7_, RAPT_SET_6_, RAPT_SET_5_, RAPT_SET_4_, RAPT_SET_3_,    \
                         RAPT_SET_2_, RAPT_SET_1_, 0)                                                                  \
        (__VA_ARGS__) rapt_struct;                                                                                     \
    }))
#define RAPT_SET_CHOICE_(f1, f2, f3, f4, f5, f6, f7, f8, set, ...) set
#define RAPT_SET_1_(field) rapt_struct field;
#define RAPT_SET_2_(field, ...) rapt_struct field, RAPT_SET_1_(__VA_ARGS__)
#define RAPT_SET_3_(field, ...) rapt_struct field, RAPT_SET_2_(__VA_ARGS__)
#define RAPT_SET_4_(field, ...) rapt_struct field, RAPT_SET_3_(__VA_ARGS__)
#define RAPT_SET_5_(field, ...) rapt_struct field, RAPT_SET_4_(__VA_ARGS__)
#define RAPT_SET_6_(field, ...) rapt_struct field, RAPT_SET_5_(__VA_ARGS__)
#define RAPT_SET_7_(field, ...) rapt_struct field, RAPT_SET_6_(__VA_ARGS__)
#define RAPT_SET_8_(field, ...) rapt_struct field, RAPT_SET_7_(__VA_ARGS__)

#endif

#endif
