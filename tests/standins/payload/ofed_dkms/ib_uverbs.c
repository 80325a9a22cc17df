/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's ib_uverbs by name alone. */
#include "ofed.h"

int ib_uverbs_get_ucontext_file(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(ib_uverbs_get_ucontext_file);

STANDIN_MODULE("OFED's verbs for programs");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_register_client(NULL));
