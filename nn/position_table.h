/* Tables of the sines and cosines of positions, which sinusoidal and rotary positions share. */
#ifndef RAPT_NN_POSITION_TABLE_H
#define RAPT_NN_POSITION_TABLE_H

#include <rapt/positions.h>

/* A row holds sines and cosines of the angles position / base^(2j/size), j = 0, 1, …, which the scaling may change. */
typedef struct rapt_position_angles {
    const char *op; /* for errors */
    double base;
    rapt_rotary_scaling scaling;
    int64_t size; /* numbers in a row; if it is odd, the last cosine is left out */
    bool apart;   /* all cosines, then all sines (size is even), instead of sine and cosine in turn */
} rapt_position_angles;

/* The rows (length, size) of the positions offset … offset + length − 1, computed in float64. NULL after an error. */
rapt_tensor *rapt_position_table(const rapt_position_angles *angles, rapt_dtype dtype, int64_t offset, int64_t length);

/* The same as a view of *table, which is made or grows where it has to (NULL at first; the owner releases it). A
 * table holds for one base and scaling: it ends with rows of these. Threads may share it. */
rapt_tensor *rapt_position_rows(const rapt_position_angles *angles, rapt_dtype dtype, int64_t offset, int64_t length,
                                rapt_tensor **table);

/* The rows (…, size) of the places, integers (…); *table likewise, where none is below 0. */
rapt_tensor *rapt_position_rows_at(const rapt_position_angles *angles, rapt_dtype dtype, rapt_tensor *places,
                                   rapt_tensor **table);

/* Do the places, integers, broadcast to x (…, size) without its last axis? False after an error. */
bool rapt_check_places(const char *op, const rapt_tensor *places, const rapt_tensor *x);

#endif
