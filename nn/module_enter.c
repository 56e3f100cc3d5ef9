/* The path of the module whose forward runs: found from the one around it, and only while somebody asks. */
#include <stdio.h>
#include <string.h>

#include "nn/entry.h"

/* Puts the name of a module below another behind the first `used` bytes; its length, −1 where it is not there. */
static int find_below(const rapt_module *module, const rapt_module *wanted, char name[RAPT_NAME_SIZE], int used)
{
    for (int i = 0; i < module->count; i++) {
        const rapt_module_entry *entry = &module->entries[i];
        if (!entry->child) continue;
        const char *dot = used > 0 && *entry->name ? "." : "";
        const int end = used + snprintf(name + used, (size_t)(RAPT_NAME_SIZE - used), "%s%s", dot, entry->name);
        if (end >= RAPT_NAME_SIZE) continue;
        const int found = entry->child == wanted ? end : find_below(entry->child, wanted, name, end);
        if (found >= 0) return found;
    }
    return -1;
}

void rapt_module_enter_now(const rapt_module *module)
{
    const rapt_module_place around = rapt_running_place;
    char name[RAPT_NAME_SIZE] = "", path[2 * RAPT_NAME_SIZE];
    if (around.module == module) return;
    const bool is_inside = around.module && around.path && find_below(around.module, module, name, 0) >= 0;
    if (!is_inside)
        snprintf(path, sizeof path, "%s", module->kind->name);
    else
        snprintf(path, sizeof path, "%.*s%s%s", RAPT_NAME_SIZE, around.path,
                 !*name                     ? ""
                 : strchr(around.path, ' ') ? "."
                                            : " ",
                 name);
    const bool is_timed = rapt_observed() & RAPT_PROFILES;
    rapt_running_place = (rapt_module_place){module, rapt_lasting_text(path), is_timed ? rapt_profile_clock() : 0};
}

void rapt_module_leave_now(void)
{
    const rapt_module_place place = rapt_running_place;
    const unsigned observers = rapt_observed();
    if (observers & RAPT_SUMMARIZES) rapt_module_left(place.module);
    if (observers & RAPT_PROFILES) rapt_profile_add_module(&place);
}
