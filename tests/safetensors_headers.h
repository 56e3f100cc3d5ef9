/* Headers of safetensors files that are bad, each in a way of its own, and a few that only look so; and what is said of
 * them. A fuzzer begins with them. */
#ifndef RAPT_TESTS_SAFETENSORS_HEADERS_H
#define RAPT_TESTS_SAFETENSORS_HEADERS_H

#include <stddef.h>

#include <rapt/error.h>

#define TENSOR(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                                                             \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first "},"                                              \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

#define EMPTY(name) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}"

static const struct {
    const char *header;
    size_t data;
    rapt_error_code code;
    const char *message;
} bad_headers[] = {
    {"", 0, RAPT_ERROR_FORMAT, "does not begin with '{'"},
    {"[]", 0, RAPT_ERROR_FORMAT, "does not begin with '{'"},
    {"{", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{}}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{\"a\"}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{\"a\":1,}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{'a':1}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{\"\xff\":1}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{\"\\u0000\":1}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{\"\xed\xa0\x80\":1}", 0, RAPT_ERROR_FORMAT, "byte 2 of the JSON header: no UTF-8"},
    {"{\"\xc0\x80\":1}", 0, RAPT_ERROR_FORMAT, "byte 2 of the JSON header: no UTF-8"},
    {"{\"\xf4\x90\x80\x80\":1}", 0, RAPT_ERROR_FORMAT, "byte 2 of the JSON header: no UTF-8"},
    {"{\"\xe2\x82\":1}", 0, RAPT_ERROR_FORMAT, "byte 2 of the JSON header: no UTF-8"},
    {"{\"ab\n\":1}", 0, RAPT_ERROR_FORMAT, "byte 4 of the JSON header: a control character"},
    {"{\"\\u000\":1}", 0, RAPT_ERROR_FORMAT, "byte 4 of the JSON header: four hexadecimal digits"},
    {"{\"\\u00", 0, RAPT_ERROR_FORMAT, "four hexadecimal digits"},
    {"{\"\\", 0, RAPT_ERROR_FORMAT, "no escape of JSON"},
    {"{\"\\a\":1}", 0, RAPT_ERROR_FORMAT, "no escape of JSON"},
    {"{\"\\ud834\":1}", 0, RAPT_ERROR_FORMAT, "half of a surrogate pair"},
    {"{\"\\udd1e\":1}", 0, RAPT_ERROR_FORMAT, "half of a surrogate pair"},
    {"{\"\\ud834\\ud834\":1}", 0, RAPT_ERROR_FORMAT, "half of a surrogate pair"},
    {"{\"\\ud834\\u", 0, RAPT_ERROR_FORMAT, "half of a surrogate pair"},
    {"{\"abc", 0, RAPT_ERROR_FORMAT, "byte 5 of the JSON header: a string without an end"},
    {"{" EMPTY("a") EMPTY("b") "}", 0, RAPT_ERROR_FORMAT, "',' or '}' expected"},
    {"{" EMPTY("a") ",}", 0, RAPT_ERROR_FORMAT, "a string expected"},
    {"{," EMPTY("a") "}", 0, RAPT_ERROR_FORMAT, "a string expected"},
    {"{\"a\":NaN}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{\"a\":99999999999999999999}", 0, RAPT_ERROR_FORMAT, "of the JSON header"},
    {TWO("[0,4]", "[4,8]") "{}", 8, RAPT_ERROR_FORMAT, "of the JSON header"},
    {"{" EMPTY("a") "," EMPTY("b") "," EMPTY("a") "}", 0, RAPT_ERROR_FORMAT, "duplicate tensor 'a'"},
    {"{" EMPTY("a") "," EMPTY("\\u0061") "}", 0, RAPT_ERROR_FORMAT, "duplicate tensor 'a'"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, RAPT_ERROR_FORMAT, "duplicate"},
    {"{\"__metadata__\":[]}", 0, RAPT_ERROR_FORMAT, "__metadata__ is not an object of texts"},
    {"{\"__metadata__\":{\"k\":1}}", 0, RAPT_ERROR_FORMAT, "the metadata 'k' is not a text"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, RAPT_ERROR_FORMAT, "duplicate"},
    {"{\"a\":1}", 0, RAPT_ERROR_FORMAT, "tensor 'a' is not an object of dtype, shape and data_offsets"},
    {"{\"a\":{}}", 0, RAPT_ERROR_FORMAT, "tensor 'a' is not an object"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}", 0, RAPT_ERROR_FORMAT,
     "and nothing else: it has x"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"shape\":[0],\"data_offsets\":[0,0]}}", 0, RAPT_ERROR_FORMAT,
     "duplicate shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, RAPT_ERROR_FORMAT, "it has no data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"offsets\":[0,0]}}", 0, RAPT_ERROR_FORMAT,
     "and nothing else: it has offsets"},
    {"{\"a\":{\"type\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, RAPT_ERROR_FORMAT,
     "and nothing else: it has type"},
    {TENSOR("8", "[4]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "'a' has no dtype"},
    {TENSOR("\"F8_E4M3\"", "[4]", "[0,4]"), 4, RAPT_ERROR_UNSUPPORTED, "has dtype F8_E4M3; F64, F32"},
    {TENSOR("\"f32\"", "[1]", "[0,4]"), 4, RAPT_ERROR_UNSUPPORTED, "has dtype f32; F64, F32"},
    {TENSOR("\"\"", "[4]", "[0,4]"), 4, RAPT_ERROR_UNSUPPORTED, "has dtype ; F64, F32"},
    {TENSOR("\"U8\"", "4", "[0,4]"), 4, RAPT_ERROR_FORMAT, "'a' has no shape"},
    {TENSOR("\"U8\"", "{}", "[0,4]"), 4, RAPT_ERROR_FORMAT, "'a' has no shape"},
    {TENSOR("\"U8\"", "[-4]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "size 0 in the shape of tensor 'a' is not a count"},
    {TENSOR("\"U8\"", "[1,4.0]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "size 1 in the shape of tensor 'a' is not a count"},
    {TENSOR("\"U8\"", "[04]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[4e0]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[+4]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[9223372036854775808]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[4,]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[,4]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[4 4]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "',' or ']' expected"},
    {TENSOR("\"U8\"", "[4", "[0,4]"), 4, RAPT_ERROR_FORMAT, "size 1 in the shape of tensor 'a' is not a count"},
    {TENSOR("\"U8\"", "[\"4\"]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[null]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "is not a count"},
    {TENSOR("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, RAPT_ERROR_UNSUPPORTED, "has rank 9; at most 8"},
    {TENSOR("\"F64\"", "[4294967296,4294967296]", "[0,0]"), 0, RAPT_ERROR_FORMAT, "more bytes than 64 bits can count"},
    {TENSOR("\"F64\"", "[0,4294967296,4294967296]", "[0,0]"), 0, RAPT_ERROR_FORMAT,
     "more bytes than 64 bits can count"},
    {TENSOR("\"F64\"", "[1152921504606846976]", "[0,0]"), 0, RAPT_ERROR_FORMAT, "more bytes than 64 bits can count"},
    {TENSOR("\"U8\"", "[4]", "[0]"), 4, RAPT_ERROR_FORMAT, "data_offsets of tensor 'a' are not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "[0,4,4]"), 4, RAPT_ERROR_FORMAT, "not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "[-4,0]"), 4, RAPT_ERROR_FORMAT, "not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "[4,0]"), 4, RAPT_ERROR_FORMAT, "not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "[0,4.0]"), 4, RAPT_ERROR_FORMAT, "not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "{\"0\":4}"), 4, RAPT_ERROR_FORMAT, "not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "\"04\""), 4, RAPT_ERROR_FORMAT, "not a begin and an end"},
    {TENSOR("\"U8\"", "[4]", "[0,3]"), 3, RAPT_ERROR_FORMAT, "has 3 bytes where its shape needs 4"},
    {TENSOR("\"I64\"", "[]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "has 4 bytes where its shape needs 8"},
    {TENSOR("\"F32\"", "[0]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "has 4 bytes where its shape needs 0"},
    {TENSOR("\"U8\"", "[4]", "[0,4]"), 3, RAPT_ERROR_FORMAT, "ends at byte 4 of the data, of which there are 3"},
    {TENSOR("\"U8\"", "[4]", "[9223372036854775803,9223372036854775807]"), 4, RAPT_ERROR_FORMAT,
     "the file is cut short"},
    {TENSOR("\"U8\"", "[4]", "[0,4]"), 5, RAPT_ERROR_FORMAT, "5 bytes of data where the tensors have 4"},
    {TENSOR("\"U8\"", "[4]", "[1,5]"), 5, RAPT_ERROR_FORMAT, "the 1 bytes of data before tensor 'a' belong to none"},
    {TENSOR("\"BOOL\"", "[2]", "[0,2]") "   ", 2, RAPT_OK, ""},
    {TENSOR("\"BOOL\"", " [\t2\r\n ] ", "[ 0 , 2 ]") "\n", 2, RAPT_OK, ""},
    {TENSOR("\"\\u0055\\u0038\"", "[]", "[0,1]"), 1, RAPT_OK, ""},
    {"{}", 1, RAPT_ERROR_FORMAT, "1 bytes of data where the tensors have 0"},
    {TWO("[0,4]", "[0,4]"), 4, RAPT_ERROR_FORMAT, "tensors 'a' and 'b' overlap"},
    {TWO("[3,7]", "[0,4]"), 7, RAPT_ERROR_FORMAT, "tensors 'b' and 'a' overlap"},
    {TWO("[0,4]", "[5,9]"), 9, RAPT_ERROR_FORMAT, "before tensor 'b' belong to none"},
};

#endif
