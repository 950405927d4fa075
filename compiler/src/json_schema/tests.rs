//! Schemas from end to end: lowered, and the grammar compiled to tables.
