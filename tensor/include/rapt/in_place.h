/* Arrays and structs written in place, in C and in C++11 and later: what RAPT_SHAPE, RAPT_AXES, RAPT_APPLY,
 * RAPT_SEQUENTIAL and RAPT_MASK are made of. They serve the call that they are written in: in C++ they end with its
 * full expression, in C with its block. In C++ numbers may not narrow, as in every braced list, and a comma in a
 * field's value wants parentheses; a struct takes 24 fields at most. */
#ifndef RAPT_IN_PLACE_H
#define RAPT_IN_PLACE_H

#include <stddef.h>

#ifndef __cplusplus

/* How many values of the type are written; as a constant array; as a constant struct by its fields. */
#define RAPT_LENGTH_OF(type, ...) ((int)(sizeof((type const[]){__VA_ARGS__}) / sizeof(type))) /* evaluates nothing */
#define RAPT_ARRAY_OF(type, ...) ((type const[]){__VA_ARGS__})
#define RAPT_STRUCT_OF(type, ...) (&(type const){__VA_ARGS__})

#else

extern "C++" { /* whoever includes rapt.h within extern "C" */
#include <initializer_list>

template <typename Element> using rapt_array_of = Element[];

template <typename Object> inline const Object *rapt_address_of(const Object &object)
{
    return &object;
}
}

#define RAPT_LENGTH_OF(type, ...) (static_cast<int>(sizeof(rapt_array_of<type>{__VA_ARGS__}) / sizeof(type)))
#define RAPT_ARRAY_OF(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())

/* Designated initialisers would be C++20's, in the order of the members only; so each .field = value is an
 * assignment, to a variable of a name of its own, for one may stand in another. */
#define RAPT_STRUCT_OF(type, ...) RAPT_STRUCT_(type, RAPT_JOIN(rapt_struct_, __COUNTER__), __VA_ARGS__)
#define RAPT_STRUCT_(type, name, ...)                                                                                  \
    rapt_address_of(__extension__({                                                                                    \
        type name = type();                                                                                            \
        RAPT_SET_CHOICE_(__VA_ARGS__, RAPT_SET_24_, RAPT_SET_23_, RAPT_SET_22_, RAPT_SET_21_, RAPT_SET_20_,            \
                         RAPT_SET_19_, RAPT_SET_18_, RAPT_SET_17_, RAPT_SET_16_, RAPT_SET_15_, RAPT_SET_14_,           \
                         RAPT_SET_13_, RAPT_SET_12_, RAPT_SET_11_, RAPT_SET_10_, RAPT_SET_9_, RAPT_SET_8_,             \
                         RAPT_SET_7_, RAPT_SET_6_, RAPT_SET_5_, RAPT_SET_4_, RAPT_SET_3_, RAPT_SET_2_, RAPT_SET_1_, 0) \
        (name, __VA_ARGS__) name;                                                                                      \
    }))
#define RAPT_SET_CHOICE_(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,    \
                         f21, f22, f23, f24, set, ...)                                                                 \
    set
#define RAPT_SET_1_(name, field) name field;
#define RAPT_SET_2_(name, field, ...) name field, RAPT_SET_1_(name, __VA_ARGS__)
#define RAPT_SET_3_(name, field, ...) name field, RAPT_SET_2_(name, __VA_ARGS__)
#define RAPT_SET_4_(name, field, ...) name field, RAPT_SET_3_(name, __VA_ARGS__)
#define RAPT_SET_5_(name, field, ...) name field, RAPT_SET_4_(name, __VA_ARGS__)
#define RAPT_SET_6_(name, field, ...) name field, RAPT_SET_5_(name, __VA_ARGS__)
#define RAPT_SET_7_(name, field, ...) name field, RAPT_SET_6_(name, __VA_ARGS__)
#define RAPT_SET_8_(name, field, ...) name field, RAPT_SET_7_(name, __VA_ARGS__)
#define RAPT_SET_9_(name, field, ...) name field, RAPT_SET_8_(name, __VA_ARGS__)
#define RAPT_SET_10_(name, field, ...) name field, RAPT_SET_9_(name, __VA_ARGS__)
#define RAPT_SET_11_(name, field, ...) name field, RAPT_SET_10_(name, __VA_ARGS__)
#define RAPT_SET_12_(name, field, ...) name field, RAPT_SET_11_(name, __VA_ARGS__)
#define RAPT_SET_13_(name, field, ...) name field, RAPT_SET_12_(name, __VA_ARGS__)
#define RAPT_SET_14_(name, field, ...) name field, RAPT_SET_13_(name, __VA_ARGS__)
#define RAPT_SET_15_(name, field, ...) name field, RAPT_SET_14_(name, __VA_ARGS__)
#define RAPT_SET_16_(name, field, ...) name field, RAPT_SET_15_(name, __VA_ARGS__)
#define RAPT_SET_17_(name, field, ...) name field, RAPT_SET_16_(name, __VA_ARGS__)
#define RAPT_SET_18_(name, field, ...) name field, RAPT_SET_17_(name, __VA_ARGS__)
#define RAPT_SET_19_(name, field, ...) name field, RAPT_SET_18_(name, __VA_ARGS__)
#define RAPT_SET_20_(name, field, ...) name field, RAPT_SET_19_(name, __VA_ARGS__)
#define RAPT_SET_21_(name, field, ...) name field, RAPT_SET_20_(name, __VA_ARGS__)
#define RAPT_SET_22_(name, field, ...) name field, RAPT_SET_21_(name, __VA_ARGS__)
#define RAPT_SET_23_(name, field, ...) name field, RAPT_SET_22_(name, __VA_ARGS__)
#define RAPT_SET_24_(name, field, ...) name field, RAPT_SET_23_(name, __VA_ARGS__)

#endif

#endif
