#include <board.h>

FIXTURE_MAIN_SILENT {}
