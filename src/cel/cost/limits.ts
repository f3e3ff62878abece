/** Cost limits in Kubernetes' units, one of which is about 50 ns of work. */

/** Per evaluation. */
export const PER_CALL_COST_MAX = 1_000_000;
/** For all rules of one custom resource in one request, or all expressions of one policy. */
export const PER_RESOURCE_COST_MAX = 10_000_000;
/** The estimated cost of one validation rule. */
export const RULE_ESTIMATE_MAX = 10_000_000;
/** The estimated cost of all validation rules of a schema. */
export const SCHEMA_ESTIMATE_MAX = 100_000_000;
/** The size of a request, which bounds values without a limit of their own. */
export const REQUEST_BYTES_MAX = 3 * 1024 * 1024;

/** The length of an expression in characters. */
export const SOURCE_LENGTH_MAX = 100_000;
/** The nesting depth of an expression. */
export const NESTING_MAX = 250;
