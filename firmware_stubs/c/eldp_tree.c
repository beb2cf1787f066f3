/* HH: a random level of a tree, then that level's oracle ([SW] 4.2). */
#include "eldp.h"

/* Say whether the levels are GRR or OLH (HRR has levels itself) of fanout, fanout^2, ... nodes. */
static bool fits(const eldp_oracle *levels, size_t level_count, uint32_t fanout)
{
    uint32_t nodes = fanout;
    for (size_t at = 0; at < level_count; at++, nodes *= fanout) {
        if (levels[at].channel.pick == NULL || levels[at].levels != 0
            || levels[at].size != nodes) {
            return false;
        }
    }
    return true;
}

eldp_status eldp_tree_init(eldp_tree *tree, uint32_t size, uint32_t fanout,
                           const eldp_oracle *levels, size_t level_count)
{
    uint64_t nodes = 1; /* at most 2^31 * 2^16 */
    uint32_t height = 0;
    tree->height = 0;
    if (size < 2 || size > ELDP_HASH_PRIME) {
        return ELDP_SIZE;
    }
    if (fanout < 2 || fanout > ELDP_MAX_SIZE) {
        return ELDP_FANOUT;
    }
    while (nodes < size) {
        nodes *= fanout;
        height++;
    }
    if (nodes > ELDP_HASH_PRIME) {
        return ELDP_SIZE;
    }
    if (height != level_count || !fits(levels, level_count, fanout)) {
        return ELDP_LEVELS;
    }
    tree->size = size;
    tree->fanout = fanout;
    tree->levels = levels;
    tree->height = height;
    return ELDP_OK;
}

eldp_status eldp_tree_report(const eldp_tree *tree, int64_t value, const eldp_entropy *entropy,
                             uint32_t *report, size_t *numbers)
{
    uint64_t level;
    if (tree->height == 0) {
        return ELDP_CHANNELS;
    }
    if (value < 0 || value >= (int64_t)tree->size) {
        return ELDP_VALUE;
    }
    eldp_status status = eldp_draw(entropy, tree->height, &level);
    if (status != ELDP_OK) {
        return status;
    }
    uint32_t node = (uint32_t)value;
    for (uint64_t below = tree->height - 1; below > level; below--) {
        node /= tree->fanout;
    }
    status = eldp_oracle_report(&tree->levels[level], node, entropy, report + 1);
    if (status == ELDP_OK) {
        report[0] = (uint32_t)level;
        *numbers = 1 + tree->levels[level].numbers;
    }
    return status;
}
