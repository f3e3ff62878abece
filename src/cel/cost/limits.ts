/** How much an expression may cost. Units are Kubernetes': one is about 50 ns of work. */

/** One evaluation. */
export const PER_CALL_COST_MAX = 1_000_000;
/** All rules of one custom resource in one request; also that of all expressions of one policy. */
export const PER_RESOURCE_COST_MAX = 10_000_000;
/** What one validation rule of a schema may be estimated to cost. */
export const RULE_ESTIMATE_MAX = 10_000_000;
/** What all validation rules of a schema may be estimated to cost together. */
export const SCHEMA_ESTIMATE_MAX = 100_000_000;
/** Bytes of a request: the bound of what has no other. */
export const REQUEST_BYTES_MAX = 3 * 1024 * 1024;

/** Characters of an expression's source. */
export const SOURCE_LENGTH_MAX = 100_000;
/** Depth of nesting in an expression. */
export const NESTING_MAX = 250;
