/** The cost of calls at evaluation, as in cel-go and Kubernetes' libraries. All other calls cost 1. */
import { List, MapValue, sizeForCost, type Value } from "../values/value.ts";

export interface CallCost {
  /** Charged before the call, so that a call beyond the budget is not made. */
  readonly before?: (args: readonly Value[]) => number;
  /** Charged after the call, from its result. */
  readonly after?: (result: Value) => number;
}

/** The cost per character of traversing a string. */
export const TRAVERSAL = 0.1;
/** The cost per character of a regular expression. */
export const REGEX = 0.25;
/** Limits an evaluation to two checks by the authorizer. */
export const CHECK_COST = 350_000;
export const LIST_COST = 10;
export const MAP_COST = 30;
export const OBJECT_COST = 40;

function size(args: readonly Value[], index: number): number {
  return sizeForCost(args[index] ?? null);
}

function traversalCost(index: number, times = 1): CallCost {
  return { before: (args) => Math.ceil(size(args, index) * times * TRAVERSAL) };
}

/** Also charges large results, which could exhaust the memory; Kubernetes' cost does not include them. */
function withResultCost(cost: CallCost): CallCost {
  return {
    ...cost,
    after: (result) => (sizeForCost(result) > FREE_RESULT_SIZE ? Math.ceil(sizeForCost(result) * TRAVERSAL) : 0),
  };
}

const FREE_RESULT_SIZE = 10_000;

const matchingCost: CallCost = {
  before: (args) => Math.ceil((1 + size(args, 0)) * TRAVERSAL) * Math.ceil(size(args, 1) * REGEX),
};
const smallerCost: CallCost = { before: (args) => Math.ceil(Math.min(size(args, 0), size(args, 1)) * TRAVERSAL) };
const sumCost: CallCost = { before: (args) => Math.ceil((size(args, 0) + size(args, 1)) * TRAVERSAL) };
const wholeCost: CallCost = { before: (args) => deepTraversalCost(args[0] ?? null) };
/** Assumes half as many requirements as characters, each with a list of values. */
const selectorCost: CallCost = {
  before: (args) => {
    const length = size(args, 1);
    return LIST_COST + Math.ceil(length * TRAVERSAL) + Math.ceil(length / 2) * (LIST_COST + OBJECT_COST);
  },
};

const byFunction: Readonly<Record<string, CallCost>> = {
  check: { before: () => CHECK_COST },
  fieldSelector: selectorCost,
  labelSelector: selectorCost,
  isSorted: wholeCost,
  sum: wholeCost,
  max: wholeCost,
  min: wholeCost,
  indexOf: wholeCost,
  lastIndexOf: wholeCost,
  url: traversalCost(0),
  lowerAscii: traversalCost(0),
  upperAscii: traversalCost(0),
  substring: traversalCost(0),
  trim: traversalCost(0),
  replace: withResultCost(traversalCost(0, 2)),
  split: traversalCost(0, 2),
  join: { after: (result) => Math.ceil(sizeForCost(result) * 2 * TRAVERSAL) },
  find: matchingCost,
  findAll: matchingCost,
  matches: matchingCost,
  cidr: traversalCost(0),
  isIP: traversalCost(0),
  isCIDR: traversalCost(0),
  "ip.isCanonical": traversalCost(0, 2),
  quantity: traversalCost(0),
  isQuantity: traversalCost(0),
  semver: traversalCost(0),
  isSemver: traversalCost(0),
  "jsonpatch.escapeKey": traversalCost(0),
};

const byOverload: Readonly<Record<string, CallCost>> = {
  string_to_ip: traversalCost(0),
  cidr_contains_ip_ip: traversalCost(0, 2),
  cidr_contains_ip_string: {
    before: (args) => Math.ceil(size(args, 0) * 2 * TRAVERSAL) + Math.ceil(size(args, 1) * TRAVERSAL),
  },
  cidr_contains_cidr: {
    before: (args) => Math.ceil(size(args, 0) * 2 * TRAVERSAL) + Math.ceil(size(args, 0) * TRAVERSAL) + 1,
  },
  cidr_contains_cidr_string: {
    before: (args) => {
      const network = size(args, 0);
      const parsed = Math.ceil(size(args, 1) * TRAVERSAL);
      return Math.ceil(network * 2 * TRAVERSAL) + Math.ceil(network * TRAVERSAL) + 1 + parsed;
    },
  },
  "format-validate": {
    before: (args) => Math.ceil((1 + size(args, 1)) * TRAVERSAL) * Math.ceil(size(args, 0) * REGEX),
  },
  starts_with_string: traversalCost(0),
  ends_with_string: traversalCost(0),
  string_to_bytes: traversalCost(0),
  bytes_to_string: traversalCost(0),
  string_format: withResultCost(traversalCost(0)),
  strings_quote: traversalCost(0),
  list_sets_contains_list: { before: (args) => 1 + size(args, 0) * size(args, 1) },
  list_sets_intersects_list: { before: (args) => 1 + size(args, 0) * size(args, 1) },
  list_sets_equivalent_list: { before: (args) => 1 + 2 * size(args, 0) * size(args, 1) },
  in_list: { before: (args) => size(args, 1) },
  less_string: smallerCost,
  less_equals_string: smallerCost,
  greater_string: smallerCost,
  greater_equals_string: smallerCost,
  less_bytes: smallerCost,
  less_equals_bytes: smallerCost,
  greater_bytes: smallerCost,
  greater_equals_bytes: smallerCost,
  add_string: sumCost,
  add_bytes: sumCost,
  contains_string: {
    before: (args) => Math.ceil(size(args, 0) * TRAVERSAL) * Math.ceil(size(args, 1) * TRAVERSAL),
  },
};

/** Undefined for calls that cost 1. */
export function runtimeCost(name: string, overload: string): CallCost | undefined {
  return byFunction[name] ?? byOverload[overload];
}

/** Exceeds the number of parts of any value in a request. */
const TRAVERSED_PARTS_MAX = 2 ** 20;

/** The cost of traversing a value and all of its parts; `Infinity` above the limit of parts. */
function deepTraversalCost(value: Value): number {
  let steps = 0;
  const visit = (part: Value): number => {
    if (++steps > TRAVERSED_PARTS_MAX) return Number.POSITIVE_INFINITY;
    if (typeof part === "string" || part instanceof Uint8Array) return Math.floor(sizeForCost(part) * TRAVERSAL);
    if (part instanceof List) return sumOf(part, visit);
    return part instanceof MapValue ? sumOf(part.keys(), (key) => visit(key) + visit(part.get(key) ?? null)) : 1;
  };
  return visit(value);
}

function sumOf(parts: Iterable<Value>, costOf: (part: Value) => number): number {
  let sum = 0;
  for (const part of parts) {
    sum += costOf(part);
    if (sum === Number.POSITIVE_INFINITY) break;
  }
  return sum;
}
