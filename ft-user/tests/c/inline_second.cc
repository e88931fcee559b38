#include "inline.h"

int second() { return in_both(3) + in_template(4); }
